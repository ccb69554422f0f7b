"""Two installers for one site: each machine by its own, the step knows of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.edges.installers import Backend, Installers
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.finding import Observed
from clusterctl.ports import BmcAddress, InstallState
from clusterctl.ports.accounts import LoginUpdate, PowerTarget
from tests.edges.pxe.kit import MAC, SERIAL
from tests.edges.pxe.test_installer import SOON, TARGET
from tests.steps.fakes import FakeInstaller

NODES = [replace(TARGET, name=name) for name in ("head1", "gpu1", "gpu2")]


class GivesAll:
    def give(self, target: PowerTarget, deadline: object) -> Observed[LoginUpdate]:
        return Observed(LoginUpdate.GIVEN)


def test_each_by_its_own() -> None:
    """Looked at together, each installer once; acted on one by one."""
    maas, pxe = FakeInstaller(), FakeInstaller()
    backends = {"head1": Backend(maas, logins=GivesAll()), "gpu1": Backend(pxe), "gpu2": Backend(pxe)}
    both = Installers(lambda node: backends[node])
    for target in NODES:
        both.prepare(target, SOON)
    assert both.observe(NODES, SOON).keys() == {"head1", "gpu1", "gpu2"}
    both.start(NODES[1], SOON)
    both.release(NODES[0], SOON)
    assert maas.calls == [("prepare", "head1"), ("release", "head1")]
    assert pxe.calls == [("prepare", "gpu1"), ("prepare", "gpu2"), ("start", "gpu1")]
    assert pxe.states["gpu2"] is InstallState.READY


def test_what_only_one_of_them_does() -> None:
    """Drives of machines that our own PXE installed are not erased through it; it logs in to no BMC by itself."""
    both = Installers(lambda node: Backend(FakeInstaller(), logins=GivesAll() if node == "head1" else None))
    with pytest.raises(EdgeError, match="erases no drives"):
        both.erase(TARGET, SOON)
    power = [PowerTarget(name, SERIAL, (MAC,), BmcAddress("192.0.2.9", "root", "pw-1")) for name in ("head1", "gpu1")]
    assert [both.give(target, SOON).value for target in power] == [LoginUpdate.GIVEN, LoginUpdate.UNKNOWN]


def test_a_machine_without_an_installer_is_reported() -> None:
    def no_installer(node: str) -> Backend:
        raise UsageError(f"no installer for {node}")

    with pytest.raises(UsageError, match="no installer for head1"):
        Installers(no_installer).observe(NODES, SOON)
