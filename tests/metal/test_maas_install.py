"""Virtual machines through the lab's MAAS, from power-off to sshd: enrolled, commissioned by a boot, deployed by another
one, and `Deployed` only when the OS on the disk runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.site import load_site
from clusterctl.operations.site_adapters import maas_settings
from clusterctl.ports import Deadline
from lab.tests.lab_kit import leftovers
from tests.e2e.site_kit import Controller, UtcClock
from tests.metal.install_kit import INSTALL_S, TO_INSTALL, MetalSite, metal_site
from tests.metal.metal_kit import needs_metal, virtual_machines

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(2 * INSTALL_S + 600)]
NODES = ("node001", "node002")
POLL_S = 2.0
IN_ORDER = ("Commissioning", "Ready", "Deploying", "Installing OS", "Image Deployed", "Rebooting", "Deployed")


class Maas:
    """The lab's, as the site's key sees it."""

    def __init__(self, metal: MetalSite) -> None:
        self._api = MaasApi(maas_settings(load_site(metal.lab.site)), UtcClock())

    def get(self, path: str, *query: tuple[str, str]) -> Any:
        return self._api.get(path, query, Deadline.after(120)).body

    def states(self) -> dict[str, str]:
        return {machine["hostname"]: machine["status_name"] for machine in self.get("machines/")}

    def events(self, node: str) -> list[str]:
        """What happened to it, oldest first."""
        rows = self.get("events/", ("op", "query"), ("hostname", node), ("limit", "1000"))["events"]
        return [row["type"] for row in reversed(rows)]


@dataclass(frozen=True)
class Installed:
    """After one run. `before`: the digests of the data drives before it; `early`: machines that MAAS called Deployed
    while the lab had not seen them start from a disk.
    """

    metal: MetalSite
    run: Controller
    before: Mapping[str, str]
    early: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.run.stdout}\n{self.run.stderr}\n{self.metal.consoles()}"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """One bootstrap of two machines, watched; at the end nothing of the lab may be left."""
    folder = tmp_path_factory.mktemp("maas")
    with metal_site("metalm", "10.177.0.0/16", folder, len(NODES), "--installer", "maas") as metal:
        before, maas, early = metal.data(), Maas(metal), []
        give_up = time.monotonic() + 2 * INSTALL_S
        with metal.site.start(*TO_INSTALL) as run:
            while not run.ended and time.monotonic() < give_up:
                deployed = [name for name, state in maas.states().items() if state == "Deployed"]
                early += [name for name in deployed if metal.lab.machine(name)["boot"] != "running"]
                time.sleep(POLL_S)
            run.wait(1)
        yield Installed(metal, run, before, tuple(early))
    assert leftovers(metal.lab) == []
    assert virtual_machines(metal.lab) == []


def test_both_are_installed(installed: Installed) -> None:
    """Exit code 0, Deployed in MAAS, running from their disks, each written once."""
    assert installed.run.wait() == 0, installed.words
    assert Maas(installed.metal).states() == dict.fromkeys(NODES, "Deployed")
    assert installed.metal.site.stages() == dict.fromkeys(NODES, "installed")
    rows = {row["name"]: (row["power"], row["boot"], row["installs"]) for row in installed.metal.rows()}
    assert rows == dict.fromkeys(NODES, ("on", "running", 1))


@pytest.mark.parametrize("node", NODES)
def test_deployed_is_a_machine_that_booted(installed: Installed, node: str) -> None:
    """At no time did MAAS call one Deployed that had not started from its disk, and all came in its order."""
    assert installed.early == ()
    happened = Maas(installed.metal).events(node)
    places = [happened.index(kind) for kind in IN_ORDER]
    assert places == sorted(places), happened


@pytest.mark.parametrize("node", NODES)
def test_each_host_is_itself(installed: Installed, node: str) -> None:
    """Its name and address, on the root disk that MAAS was given, with the host key that clusterctl made."""
    metal = installed.metal
    assert metal.ssh(node, "hostname") == node
    assert metal.lab.machine(node)["address"] in metal.ssh(node, "ip", "-4", "-brief", "address")
    drives = json.loads(metal.ssh(node, "lsblk", "--json", "--output", "NAME,SERIAL,MOUNTPOINTS"))["blockdevices"]
    roots = [
        drive["serial"]
        for drive in drives
        if any("/" in (part["mountpoints"] or ()) for part in drive.get("children", ()))
    ]
    assert roots == [f"BOSS0{node[-3:]}"]


def test_the_data_drives_were_not_touched(installed: Installed) -> None:
    """Read from outside of the machines."""
    assert len(installed.before) == 4 * len(NODES)
    assert installed.metal.data() == installed.before
