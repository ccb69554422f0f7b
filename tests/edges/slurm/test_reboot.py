"""Reboots through a real Slurm: its own daemon runs RebootProgram, and the node is back only for what is ours."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.scheduler import SlurmScheduler
from clusterctl.edges.scheduler.slurm_reboots import SlurmReboots
from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NodePermits, reboot_pool
from clusterctl.steps.scheduler_reboot import RebootedNode, RebootServices, SchedulerReboots
from tests.edges.slurm.cluster import SlurmCluster, running_slurm
from tests.edges.slurm.job_site import eventually
from tests.steps.fakes import FixedClock, identified

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]

NODES = ("c1", "c2", "c3", "c4", "c5")
"""A node reboots in one test alone: two boots within a few seconds are taken for one."""
PROGRAM = """\
#!/usr/bin/python3
import os, signal, time
def arguments(pid):
    return open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
pid = os.getppid()
while b"slurmd" not in arguments(pid)[0]:
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
name = arguments(pid)[arguments(pid).index(b"-N") + 1].decode()
open(f"FOLDER/{name}.reboots", "a").write("x")
if os.fork():
    os._exit(0)
os.setsid()
os.kill(pid, signal.SIGTERM)
while os.path.exists(f"/proc/{pid}") or os.path.exists(f"FOLDER/{name}.waits"):
    time.sleep(0.05)
os.execvp("slurmd", ["slurmd", "-b", "-N", name])
"""
"""Ends the slurmd that runs it, and starts another that reports a new boot (-b)."""


@dataclass
class Site:
    """A journal on a real Slurm, and what the nodes' checks find."""

    folder: Path
    slurm: SlurmCluster
    troubles: dict[str, str] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)
    checks: int = 0
    stop_after: int = 0

    def check(self, names: Sequence[str]) -> Mapping[str, str]:
        self.checks += 1
        if self.checks == self.stop_after:
            self.cancelled.set()
        return {name: self.troubles.get(name, "") for name in names}

    def reboots(self, name: str) -> int:
        file = self.slurm.folder / f"{name}.reboots"
        return len(file.read_text()) if file.exists() else 0

    def run(self, *names: str, stop_after_checks: int = 0) -> dict[str, RebootedNode]:
        """Reboot the nodes; the operator stops it after so many checks."""
        self.stop_after = stop_after_checks
        self.cancelled.clear()
        book = open_journal(f"sqlite:///{self.folder}/j.db", FixedClock(), Holder("r", "alice"))
        known = {node.name for node in book.summaries()}
        for name in set(names) - known:
            identified(book, name, name.upper(), "gold")
        states = [book.state(NodeId(f"id-{name}")) for name in names]
        acts = IntentLog(book, book.claim([state.id for state in states], "r").granted)
        services = RebootServices(
            scheduler=SlurmScheduler(FixedClock(), Origin.SIMULATED),
            reboots=SlurmReboots(),
            permits=NodePermits(reboot_pool(book, 8)),
            checks=self.check,
            drain_s=600.0,
            poll_s=1.0,
        )
        run = SchedulerReboots(services, acts, "row remap", "r1")
        try:
            nodes = [(one, Serial(one.name.upper())) for one in states]
            return {one.name: one for one in run.reboot(nodes, Deadline.after(1800, self.cancelled))}
        finally:
            book.close()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    program = tmp_path_factory.mktemp("reboot") / "reboot"
    with running_slurm(NODES, settings=f"RebootProgram={program}\nResumeTimeout=900\n") as found:
        program.write_text(PROGRAM.replace("FOLDER", str(found.folder)))
        program.chmod(0o755)
        before = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
        os.environ.update(found.environment)
        yield found
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Site:
    for file in slurm.folder.glob("*.reboots"):
        file.unlink()
    slurm.reset()
    return Site(tmp_path, slurm)


def test_a_drained_node_reboots_once_and_serves_again(site: Site) -> None:
    """For a check of its own, and for the operator; a job that runs ends first, and the nodes get jobs afterwards."""
    site.slurm.update("c1", "State=DRAIN", "Reason=clusterctl:gpu_row_remap:20260501T000000Z")
    site.slurm.work_on("c2", seconds=8)
    found = site.run("c1", "c2")
    assert [one.error for one in found.values()] == [None, None]
    assert (site.reboots("c1"), site.reboots("c2"), site.reboots("c3")) == (1, 1, 0)
    site.slurm.wait_for({"c1": "idle", "c2": "idle"})
    assert site.slurm.jobs[0].wait(600) == 0
    site.slurm.work_on("c1")


def test_what_another_drained_is_neither_rebooted_nor_resumed(site: Site) -> None:
    """Its drain stays with its reason."""
    site.slurm.update("c1", "State=DRAIN", "Reason=fan is noisy")
    assert "fan is noisy" in str(site.run("c1")["c1"].error)
    assert site.reboots("c1") == 0
    assert (site.slurm.states()["c1"], site.slurm.reasons()["c1"]) == ("drained", "fan is noisy")


def test_a_drain_by_another_during_the_reboot_stays(site: Site) -> None:
    """The node does not get work after its reboot, although we had ordered that."""
    waits = site.slurm.folder / "c3.waits"
    waits.touch()

    def drain_it() -> None:
        eventually(lambda: site.reboots("c3") == 1)
        site.slurm.update("c3", "State=DRAIN", "Reason=fan is noisy")
        waits.unlink()

    other = threading.Thread(target=drain_it, daemon=True)
    other.start()
    assert "fan is noisy" in str(site.run("c3")["c3"].error)
    assert site.slurm.states()["c3"] == "down"
    assert site.slurm.reasons()["c3"].startswith("fan is noisy")


def test_a_node_that_its_checks_refuse_stays_out_and_can_be_rebooted_again(site: Site) -> None:
    """It is down with our reason; the next order reboots it again."""
    site.troubles["c4"] = "gpu_row_remap is FAIL"
    with pytest.raises(CancelledError):
        site.run("c4", stop_after_checks=2)
    assert site.slurm.states()["c4"] == "down"
    assert site.slurm.reasons()["c4"].startswith("clusterctl:reboot:r1")
    site.troubles.clear()
    assert site.run("c4")["c4"].error is None
    assert site.reboots("c4") == 1
    site.slurm.wait_for({"c4": "idle"})
    site.slurm.update("c5", "State=DOWN", "Reason=clusterctl:reboot:r0")
    assert site.run("c5")["c5"].error is None
    assert site.reboots("c5") == 1
