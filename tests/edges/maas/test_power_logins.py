"""The login that MAAS has at a BMC: as it is read to be tried, and after it was given a new password."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.maas import MaasPowerLogins
from clusterctl.edges.maas.power_logins import power_login
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Mac, Serial
from clusterctl.formats.maas.machines import PowerParameters
from clusterctl.ports import Deadline, FailureKind, InstallError, InstallState
from clusterctl.ports.accounts import LoginUpdate, PowerTarget
from clusterctl_lab.emulators.maas.status import Status
from tests.edges.maas.kit import BMC_PASSWORD, Lab, UtcClock, until

NEW = "Nfrsh4Pq2TzXw7Ka"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, machines=2, network="127.179.0.0/16")
    yield lab
    lab.close()


def target(lab: Lab, name: str = "node001", password: str = NEW) -> PowerTarget:
    wanted = lab.target(name)
    return PowerTarget(name, wanted.serial, wanted.macs, replace(wanted.bmc, password=password))


def give(lab: Lab, wanted: PowerTarget) -> LoginUpdate:
    seen = MaasPowerLogins(lab.settings(), UtcClock()).give(wanted, Deadline.after(60))
    assert all(NEW.encode() not in item.content for item in seen.evidence)
    return seen.value


def enrolled(lab: Lab) -> None:
    """node001 in MAAS and inventoried, with the old password."""
    installer = lab.installer()
    installer.prepare(lab.target(), Deadline.after(60))
    until(installer, lab.target(), InstallState.READY)


def node(lab: Lab):
    return next(iter(lab.maas.service.store.nodes.values()))


def test_given_read_back_and_used(lab: Lab) -> None:
    """MAAS powers the machine with it: a deployment goes through. A second time there is nothing to do."""
    enrolled(lab)
    machine = lab.world.machines["node001"]
    lab.run(lab.world.replace(replace(machine, bmc=replace(machine.bmc, password=NEW))))
    assert give(lab, target(lab)) is LoginUpdate.GIVEN
    before = dict(node(lab).power_parameters)
    assert before["power_pass"] == NEW
    assert before["power_user"] == "root"
    assert give(lab, target(lab)) is LoginUpdate.HAD
    assert node(lab).power_parameters == before
    installer = lab.installer()
    installer.start(lab.target(), Deadline.after(60))
    assert until(installer, lab.target(), InstallState.INSTALLED).state is InstallState.INSTALLED


def test_a_machine_that_maas_does_not_know(lab: Lab) -> None:
    """No login to report; none is made."""
    assert give(lab, target(lab)) is LoginUpdate.UNKNOWN
    assert lab.maas.service.store.nodes == {}


def test_an_account_of_maas_own(lab: Lab) -> None:
    """Its password is not ours to change."""
    enrolled(lab)
    node(lab).power_parameters["power_user"] = "maas"
    assert give(lab, target(lab)) is LoginUpdate.OTHER
    assert node(lab).power_parameters["power_pass"] == BMC_PASSWORD
    node(lab).power_type, node(lab).power_parameters = "manual", {}
    assert give(lab, target(lab)) is LoginUpdate.OTHER


def test_another_machines_bmc(lab: Lab) -> None:
    """MAAS would show the password to it: refused, and nothing is changed."""
    enrolled(lab)
    node(lab).power_parameters["power_address"] = "192.0.2.7"
    with pytest.raises(EdgeError, match=r"has its BMC at 192\.0\.2\.7") as caught:
        give(lab, target(lab))
    assert caught.value.remedy
    assert node(lab).power_parameters["power_pass"] == BMC_PASSWORD


def test_another_machine_of_that_name(lab: Lab) -> None:
    """By MAC or serial it must be proven; the name alone is nothing."""
    enrolled(lab)
    wanted = replace(target(lab), serial=Serial("LAB9999"), macs=(Mac("02:00:00:00:00:99"),))
    with pytest.raises(EdgeError, match="has serial"):
        give(lab, wanted)
    assert node(lab).power_parameters["power_pass"] == BMC_PASSWORD


def used(lab: Lab) -> tuple[str, str, str] | None:
    """Return host, user and password with which MAAS would switch node001, as the installer names them."""
    found = lab.installer().power_login(lab.target(), Deadline.after(60))
    return None if found is None else (found.host, found.user, found.password)


def test_the_login_to_try_is_the_one_that_maas_has(lab: Lab) -> None:
    """The site's before MAAS knows the machine; then MAAS's own; none over IPMI, which no Redfish login proves."""
    host = lab.target().bmc.host
    assert used(lab) == (host, "root", BMC_PASSWORD)
    enrolled(lab)
    node(lab).power_parameters |= {"power_user": "maas", "power_pass": NEW}
    assert used(lab) == (host, "maas", NEW)
    node(lab).power_type = "ipmi"
    assert used(lab) is None


def test_the_login_of_another_users_machine_is_not_tried(lab: Lab) -> None:
    """It is refused before its password is read."""
    enrolled(lab)
    node(lab).status, node(lab).owner = Status.DEPLOYED, "alice"
    before = sum(lab.maas.requests.values())
    with pytest.raises(InstallError, match="alice") as caught:
        used(lab)
    assert caught.value.failure is FailureKind.FOREIGN
    assert not any("power_parameters" in words for words in lab.maas.requests)
    assert sum(lab.maas.requests.values()) > before


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("bmc.example", "bmc.example", 8443),
        ("BMC.example:9443", "bmc.example", 8443),
        ("https://bmc.example/", "bmc.example", 8443),
        ("192.0.2.7", "192.0.2.7", 443),
        ("192.0.2.7:8443", "192.0.2.7", 8443),
        ("[2001:db8::7]:8443", "2001:db8::7", 8443),
        ("2001:db8::7", "2001:db8::7", 443),
    ],
)
def test_where_maas_logs_in(lab: Lab, address: str, host: str, port: int) -> None:
    """At the site's address of the BMC where MAAS has the same host, else at MAAS's, never without TLS."""
    wanted = lab.target(bmc=replace(lab.target().bmc, host="bmc.example", port=8443, plain_http=host != "bmc.example"))
    found = power_login(PowerParameters(address, "root", NEW), wanted)
    assert (found.host, found.port, found.plain_http) == (host, port, False)


@pytest.mark.parametrize("lacking", ["address", "user", "password"])
def test_power_parameters_without_a_part_are_no_login(lab: Lab, lacking: str) -> None:
    """MAAS could switch nothing: nothing is tried, and the remedy is to complete them."""
    whole = PowerParameters("192.0.2.7", "root", NEW)
    with pytest.raises(InstallError, match="MAAS lacks") as caught:
        power_login(replace(whole, **{lacking: ""}), lab.target())
    assert (caught.value.failure, NEW in str(caught.value)) == (FailureKind.LOGIN, False)
