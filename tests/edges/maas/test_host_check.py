"""Is the MAAS host ready? Each finding against the lab's MAAS with that thing wrong, and the command's exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.host import HostFacts, HostReport, SiteNeeds, check_host
from clusterctl.edges.maas.settings import StateLimits
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.errors import AuthenticationError, UsageError
from clusterctl.fleet.node import Mac
from clusterctl.ports import Deadline
from clusterctl_cli.main import run
from clusterctl_lab.emulators.maas.images import Image
from clusterctl_lab.maas_quirk import MaasQuirk
from tests.edges.maas.kit import API_KEY, MAAS_PORT, Lab, UtcClock
from tests.edges.site.ready import write_ready_site

NEEDS = SiteNeeds("jammy", "amd64/generic", nodes=511, at_once=32, limits=StateLimits(3600, 3600, 5400))


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"), network="127.93.0.0/16")
    yield lab
    lab.close()


@pytest.fixture
def lab(serving: Lab) -> Lab:
    """MAAS as its operator prepared it: the time-out raised, name servers known."""
    service = serving.maas.service
    quirked(serving)
    service.faults.__init__()
    service.settings.update(node_timeout=60, enable_http_proxy=True, ntp_servers="ntp.example", ntp_external_only=False)
    service.settings.update(http_proxy=None, commissioning_distro_series="focal", upstream_dns=None)
    return serving


def look(lab: Lab, needs: SiteNeeds = NEEDS, **changes: Any) -> HostReport:
    return check_host(HostFacts(MaasApi(lab.settings(**changes), UtcClock()), Deadline.after(60), needs))


def quirked(lab: Lab, *quirks: str) -> None:
    """Give MAAS these quirks, and no others."""
    machine = replace(lab.world.machines["node001"], maas_quirks=frozenset(MaasQuirk(quirk) for quirk in quirks))
    lab.run(lab.world.replace(machine))


def one(lab: Lab, name: str, **changes: Any) -> Diagnosis:
    found = {item.name: item for item in look(lab, replace(NEEDS, **changes)).found}
    assert len(found) == 15
    return found[name]


def test_a_maas_that_is_ready(lab):
    """All well, but for what is not tried; and each thing is asked once."""
    lab.maas.requests.clear()
    report = look(lab)
    assert report.reached
    assert {item.name: item.health for item in report.found if item.health is not Health.OK} == {
        "maas_power": Health.NOT_MEASURED
    }
    assert lab.maas.requests.total() < 30
    assert all(not item.remedy for item in report.found)


WRONG: list[tuple[str, Callable[[Lab], None], Health, str]] = [
    ("maas_version", lambda lab: setattr(lab.maas.faults, "version", "3.1.4"), Health.BROKEN, "3.2 or later"),
    ("maas_version", lambda lab: setattr(lab.maas.faults, "version", "3.8.0"), Health.WARN, "newer than 3.7"),
    ("maas_version", lambda lab: setattr(lab.maas.faults, "version", "edge"), Health.NOT_MEASURED, "'edge'"),
    ("maas_racks", lambda lab: setattr(lab.maas.faults, "rack_connected", False), Health.BROKEN, "rack01 (dead)"),
    ("maas_images", lambda lab: lab.maas.faults.unsynced.add("jammy"), Health.BROKEN, "still being fetched"),
    ("maas_dhcp", lambda lab: setattr(lab.maas.faults, "dhcp_off", True), Health.BROKEN, "serves no DHCP"),
    ("maas_proxy", lambda lab: lab.maas.service.settings.update(enable_http_proxy=False), Health.WARN, "without any"),
    (
        "maas_proxy",
        lambda lab: lab.maas.service.settings.update(http_proxy="http://c:3142"),
        Health.OK,
        "http://c:3142",
    ),
    ("maas_ntp", lambda lab: lab.maas.service.settings.update(ntp_servers=""), Health.WARN, "no NTP servers"),
    ("maas_ntp", lambda lab: lab.maas.service.settings.update(ntp_external_only=True), Health.OK, "from ntp.example"),
    ("maas_node_timeout", lambda lab: lab.maas.service.settings.update(node_timeout=30), Health.WARN, "the default"),
    ("maas_node_timeout", lambda lab: lab.maas.service.settings.update(node_timeout=10), Health.BROKEN, "longer"),
    ("maas_node_timeout", lambda lab: lab.maas.service.settings.update(node_timeout=90), Health.WARN, "after 60"),
    ("maas_key", lambda lab: quirked(lab, "no-rights"), Health.BROKEN, "no administrator"),
    ("maas_images", lambda lab: quirked(lab, "no-rights"), Health.BROKEN, "our key may not read this"),
    (
        "maas_commissioning",
        lambda lab: lab.maas.service.settings.update(commissioning_distro_series="noble"),
        Health.BROKEN,
        "no image of 'noble'",
    ),
]


@pytest.mark.parametrize(("name", "spoil", "health", "words"), WRONG, ids=[f"{item[0]}-{item[3]}" for item in WRONG])
def test_what_is_wrong_is_named_with_a_remedy(lab, name, spoil, health, words):
    """One thing wrong at a time; each problem has a remedy."""
    spoil(lab)
    found = one(lab, name)
    assert (found.health, words in found.found) == (health, True), found
    assert bool(found.remedy) is (health in (Health.WARN, Health.BROKEN))


@pytest.mark.parametrize(
    ("changes", "name", "health", "words"),
    [
        ({"series": "noble"}, "maas_images", Health.BROKEN, "MAAS has rocky9-custom, ubuntu/focal, ubuntu/jammy"),
        ({"series": "custom/rocky9-custom"}, "maas_images", Health.OK, "rocky9-custom"),
        ({"series": "ubuntu/jammy"}, "maas_images", Health.OK, "ga-22.04, amd64/hwe-22.04"),
        ({"architecture": "arm64/generic"}, "maas_images", Health.BROKEN, "for arm64"),
        ({"nodes": 20_000}, "maas_addresses", Health.WARN, "16384 addresses for machines that boot"),
        ({"nodes": 60_000}, "maas_addresses", Health.BROKEN, "for installed ones; the site has 60000 nodes"),
        ({"nodes": 20_000, "at_once": 20_000}, "maas_addresses", Health.BROKEN, "20000 of them at once"),
    ],
)
def test_what_the_site_wants_is_compared_with_what_is_there(lab, changes, name, health, words):
    """Release, architecture, and addresses for as many machines."""
    found = one(lab, name, **changes)
    assert (found.health, words in found.found) == (health, True), found


def test_racks_of_old_maas_keep_their_own_images_those_of_new_do_not(lab):
    """From 3.5 on `list_boot_images` has no content any more, and is not asked."""
    lab.maas.requests.clear()
    look(lab)
    assert lab.maas.requests["GET rackcontrollers list_boot_images"] == 2
    lab.maas.faults.version = "3.6.2"
    lab.maas.requests.clear()
    look(lab)
    assert lab.maas.requests["GET rackcontrollers list_boot_images"] == 0


def test_a_rack_that_has_not_the_image_yet_is_named(lab):
    """The region has it whole, the rack does not."""
    images = lab.maas.service.images
    before, images.all = images.all, (*images.all, Image("ubuntu/noble", ("ga-24.04",)))
    try:
        assert one(lab, "maas_images", series="noble").health is Health.OK
        lab.maas.faults.rack_without.add("noble")
        found = one(lab, "maas_images", series="noble")
        assert (found.health, "rack01" in found.found) == (Health.WARN, True)
    finally:
        images.all = before


def test_a_subnet_that_maas_has_not_is_a_wrong_word(lab):
    """The operator named it: exit code 2, with the subnets that there are."""
    with pytest.raises(UsageError, match=r"127\.93\.0\.0/16"):
        look(lab, replace(NEEDS, subnet="10.9.0.0/24"))
    assert look(lab, replace(NEEDS, subnet="127.93.0.0/16")).reached


def test_a_wrong_clock_is_reported_before_maas_refuses_the_key(lab):
    """MAAS gives the time in each answer's header, to the second."""

    def found(seconds: float) -> Diagnosis:
        clock = UtcClock(timedelta(seconds=seconds))
        facts = HostFacts(MaasApi(lab.settings(), clock), Deadline.after(60), NEEDS)
        return next(item for item in check_host(facts).found if item.name == "maas_clock")

    assert found(0).health is Health.OK
    assert (found(60).health, "behind ours" in found(60).found) == (Health.WARN, True)
    assert found(-1000).health is Health.BROKEN


def test_a_wrong_key_ends_the_examination(lab):
    """One finding; nothing else is asked with a key that MAAS rejects."""
    report = look(lab, api_key="consumerkey:tokenkey:wrong")
    assert not report.reached
    assert [item.health for item in report.found[:2]] == [Health.BROKEN, Health.NOT_MEASURED]
    assert "secretkey" not in str(report)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(lab: Lab, tmp_path: Path) -> Path:
    folder = write_ready_site(tmp_path / "site")
    file = folder / "site.yml"
    file.write_text(file.read_text().replace("maas.example:5443", f"{lab.world.layout.maas}:{MAAS_PORT}"))
    (folder / "maas-ca.pem").write_bytes(lab.ca.file.read_bytes())
    (folder / "secrets" / "maas-api-key").write_text(f"{API_KEY}\n")
    return folder


def test_the_command_prints_findings_and_has_exit_codes(lab, site, capsys):
    """0 ready, 1 broken, 3 not reached, 2 a subnet that is not there; JSON as doctor's."""
    words = ["maas", "check", "--site", str(site)]
    assert run(words) == 0
    assert "✓ maas_racks" in capsys.readouterr().out
    lab.maas.faults.dhcp_off = True
    assert run([*words, "--json"]) == 1
    checks = {item["name"]: item for item in json.loads(capsys.readouterr().out)["checks"]}
    assert (checks["maas_dhcp"]["verdict"], checks["maas_version"]["verdict"]) == ("broken", "ok")
    assert run([*words, "--subnet", "10.9.0.0/24"]) == 2
    (site / "secrets" / "maas-api-key").write_text("consumerkey:tokenkey:wrong\n")
    assert run(words) == 3


def test_a_site_without_maas_has_nothing_to_check(site, capsys):
    """Its machines are installed by our own PXE: wrong usage, reported as such."""
    file = site / "site.yml"
    pxe = "provisioning:\n  backend: pxe\n  interface: eno2\n  address: 10.20.0.2\n  image: debian-12\n\n"
    file.write_text(re.sub(r"provisioning:\n(?:  .*\n)+\n", pxe, file.read_text()))
    assert run(["maas", "check", "--site", str(site)]) == 2
    assert "the site has no MAAS" in capsys.readouterr().err


def test_rights_on_a_pool_are_tried_on_a_machine_of_it(lab):
    """With RBAC an administrator may lack rights on a pool: shown before a machine of the site is enrolled there."""
    store = lab.maas.service.store
    assert one(lab, "maas_rights").health is Health.OK
    quirked(lab, "no-pool-rights")
    nothing = one(lab, "maas_rights")
    assert (nothing.health, "no machine is there" in nothing.found) == (Health.NOT_MEASURED, True)
    (mac,) = [machine.boot_mac for machine in lab.world.machines.values() if machine.maas_quirks]
    lab.maas.service._enlist(mac)
    (node,) = store.nodes.values()
    node.pool = "default"
    refused = one(lab, "maas_rights")
    assert (refused.health, "pool default" in refused.found) == (Health.BROKEN, True)
    assert "Operator" in refused.remedy
    other = replace(lab.target(), name="node002", macs=(Mac("02:00:00:00:00:99"),))
    with pytest.raises(AuthenticationError, match="pool default: nothing was changed"):
        lab.installer().prepare(other, Deadline.after(60))
    assert list(store.nodes.values()) == [node]
    node.pool = "research"
    hidden = one(lab, "maas_pool", pool="training")
    assert "shows our key no pool 'training'" in hidden.found
    store.nodes.clear()


def test_the_pool_is_checked_before_anything_is_enrolled(lab):
    """It exists, and each machine of the site is in it, in MAAS's own, or in one that the operator has named."""
    assert one(lab, "maas_pool").health is Health.OK
    missing = one(lab, "maas_pool", pool="training")
    assert (missing.health, "no pool 'training'" in missing.found) == (Health.BROKEN, True)
    quirked(lab, "other-pool")
    (MaasApi(lab.settings(), UtcClock())).get("version/", (), Deadline.after(60))
    store = lab.maas.service.store
    (node,) = store.nodes.values()
    node.hostname = "node001"
    needs = {"pool": "default", "names": ("node001",)}
    elsewhere = one(lab, "maas_pool", **needs)
    assert (elsewhere.health, "node001 (research)" in elsewhere.found) == (Health.WARN, True)
    assert one(lab, "maas_pool", **needs, move_from_pools=("research",)).health is Health.OK
    store.nodes.clear()
