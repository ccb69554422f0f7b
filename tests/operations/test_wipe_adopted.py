"""`retire --wipe --adopted`: a machine that others installed is erased through our own PXE, and by nothing else.

The store, the boot scripts and the exchange with the machine are the real ones; its BMC and its deployer are played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Serial, Stage
from clusterctl.operations import wipe
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Result
from clusterctl.ports import Deadline, InstallState, InstallStatus, InstallTarget, Power
from tests.edges.pxe.kit import report
from tests.edges.pxe.test_installer import FakeBmc as SwitchedBmc
from tests.edges.pxe.test_installer import World
from tests.events import data_of
from tests.operations.test_adopt import Cluster, Keys, Outside, cluster, machine
from tests.steps.fakes import FakeBmc, FakeBmcs

__all__ = ["cluster"]
SERIAL = Serial("SN-n1")
REQUEST = wipe.WipeRequest(node="n1", reason="lease ended", serial=SERIAL, adopted=True)
BOTH = """\
provisioning:
  - {backend: pxe, nodes: ["spare*"], interface: eno2, address: 192.0.2.1, image: debian-12}
  - {backend: existing}

timing: {install_poll_s: 0.01}

"""


@dataclass
class Deployer:
    """Meets `Eraser` by our own PXE, whose machine boots once it is erased. `disks`: what its kernel sees; `killed`:
    the run ends while it erases.
    """

    world: World
    disks: Sequence[str]
    killed: bool = False
    erases: list[str] = field(default_factory=list)
    to_erase: list[str] = field(default_factory=list)

    def erases_any(self, name: str) -> bool:
        return self.world.installer.erases_any(name)

    def power_login(self, target: InstallTarget, deadline: Deadline) -> None:
        return None

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self.erases.append(target.name)
        return self.world.installer.erase(target, deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> dict[str, Observed[InstallStatus]]:
        found = self.world.installer.observe(targets, deadline)
        (target,) = targets
        if found[target.name].value.state is InstallState.ERASING:
            if self.killed:
                raise KeyboardInterrupt
            self._play(target)
            found = self.world.installer.observe(targets, deadline)
        return dict(found)

    def _play(self, target: InstallTarget) -> None:
        """The machine boots the deployer, reports itself, erases what it has to, and reports the end."""
        attempt = self.world.attempts.find(target.name)
        assert attempt is not None
        handlers = self.world.handlers
        handlers.boot(target.macs[0], SERIAL)
        answer = handlers.post(attempt.token, "report", report(SERIAL, tuple(self.disks)).encode(), "10.0.1.1").content
        self.to_erase = [line for line in answer.decode().splitlines() if line.startswith("erase=")]
        handlers.post(attempt.token, "done", b"", "10.0.1.1")


@dataclass
class Leaving:
    """The cluster, with n1 adopted, and a PXE of the site."""

    cluster: Cluster
    context: SiteContext
    deployer: Deployer

    def wiped(self, request: wipe.WipeRequest = REQUEST) -> Result:
        preview = wipe.preview(self.context, request)
        return wipe.run(self.context, request, Control(preview.digest))

    def acts(self) -> list[str]:
        node = self.context.node("n1")
        events = self.context.journal.history(Stream.NODE, node.id)
        return [data_of(event)["act"] for event in events if event.kind is Kind.ACT_INTENDED]


@pytest.fixture
def leaving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Leaving:
    cluster.adopt("n1")
    folder: Path = cluster.site.site.folder
    text = (folder / "site.yml").read_text()
    (folder / "site.yml").write_text(text.replace("provisioning: {backend: existing}\n\n", BOTH))
    world = World(tmp_path_factory.mktemp("pxe"), bmc=SwitchedBmc(serial=SERIAL))
    drives = machine(SERIAL).drives or ()
    deployer = Deployer(world, [str(drive.serial) for drive in drives])
    bmc = FakeBmc(machine(SERIAL), after_boot=machine(SERIAL))

    def connect(site: object, _access: object) -> LeavingOutside:
        return LeavingOutside(site, shell=cluster.hosts, bmcs=FakeBmcs({"10.0.0.1": bmc}), eraser=deployer)  # type: ignore[arg-type]

    context = replace(cluster.site, site=load_site(folder), connect=connect)  # type: ignore[arg-type]
    return Leaving(cluster, context, deployer)


@dataclass
class LeavingOutside(Outside):
    eraser: Deployer = field(kw_only=True)
    host_keys: Keys = field(default_factory=Keys)


def test_an_adopted_machine_is_erased_once_and_retired(leaving: Leaving) -> None:
    """Every drive that its BMC reports, after the preview that warns of it; then it is off, and out of the site's life."""
    preview = wipe.preview(leaving.context, REQUEST)
    assert preview.warnings == ("clusterctl did not install this machine: its OS and data are of others, and are lost",)
    assert len(preview.effects) == 5
    assert leaving.wiped().exit_code == 0
    node = leaving.context.node("n1")
    assert (node.stage, node.open_acts, leaving.deployer.erases) == (Stage.RETIRED, (), ["n1"])
    assert [act for act in leaving.acts() if act.startswith("retire")] == ["retire.erase", "retire.power_off"]
    assert leaving.deployer.to_erase == [f"erase=/dev/nvme{at}n1" for at in range(5)]
    with pytest.raises(UsageError):
        leaving.wiped()


def test_killed_while_it_erases(leaving: Leaving) -> None:
    """The next run goes on: nothing is ordered a second time."""
    leaving.deployer.killed = True
    with pytest.raises(KeyboardInterrupt):
        leaving.wiped()
    leaving.deployer.killed = False
    assert leaving.wiped().exit_code == 0
    assert leaving.deployer.erases == ["n1"]
    assert leaving.context.node("n1").stage is Stage.RETIRED


def test_other_drives_than_those_of_its_bmc(leaving: Leaving) -> None:
    """A drive that only the kernel sees: nothing is erased, and the node is not retired."""
    leaving.deployer.disks = [*leaving.deployer.disks, "FOREIGN"]
    with pytest.raises(EdgeError, match="not erased"):
        leaving.wiped()
    assert leaving.context.node("n1").stage is not Stage.RETIRED


def test_without_the_operators_order(leaving: Leaving) -> None:
    """Without --adopted, and with another serial: exit code 2, and nothing is asked of the machine."""
    with pytest.raises(UsageError, match="never writes to its disks"):
        leaving.wiped(replace(REQUEST, adopted=False))
    with pytest.raises(UsageError, match="nothing was done"):
        leaving.wiped(replace(REQUEST, serial="SN-n2"))
    assert leaving.deployer.erases == []
    assert leaving.deployer.world.bmc.state is Power.ON
