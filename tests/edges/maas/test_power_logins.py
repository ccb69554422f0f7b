"""The new password of a BMC, given to the lab's MAAS, which must then still power the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.maas import MaasPowerLogins
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Mac, Serial
from clusterctl.ports import Deadline, InstallState
from clusterctl.ports.accounts import LoginUpdate, PowerTarget
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
