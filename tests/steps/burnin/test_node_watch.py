"""The sampler's session while a node is loaded: one for loads that follow each other, and none that is left behind."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.finding import Observed
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.burnin.node_watch import NodeWatch, WatchPlan
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.suites.suite import shipped_suite
from tests.burnin.kit import expected
from tests.lab_data import lab_limits
from tests.steps.burnin.test_burnin import SKU, nodes
from tests.steps.fakes import NOW, FixedClock


@dataclass(frozen=True)
class Stopped:
    """A shell whose sessions all end because an operator stops the run. Meets `Shell`."""

    def run(self, host: HostAddress, argv: object, stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        raise CancelledError(f"stopped while running a command on {host.name}")


@contextmanager
def thread_errors() -> Iterator[list[threading.ExceptHookArgs]]:
    """What Python would print of threads that ended with an error."""
    found: list[threading.ExceptHookArgs] = []
    before, threading.excepthook = threading.excepthook, found.append
    try:
        yield found
    finally:
        threading.excepthook = before


@dataclass
class Host:
    """A host whose sampler runs until its session is ended. Meets `Shell`. `asked`: sessions in their order."""

    asked: list[str] = field(default_factory=list)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    samples: bool = True

    def run(self, host: HostAddress, argv: object, stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        names = _asked(stdin)
        if "load_sampler" in names:
            self.asked.append("load_sampler")
            self.begun.release()
            if not deadline.cancelled.wait(600):
                raise AssertionError("nothing has ended the sampler")
            raise CancelledError("stopped")
        if "load_sampler_begun" in names:
            assert self.begun.acquire(timeout=600)
        self.asked.append("+".join(name for name in ("load_sampler_begun", "load_samples", "dmesg") if name in names))
        return Observed(Ran(0, self._answer(names), "", 0.1))

    def _answer(self, names: Iterable[str]) -> str:
        one = {"argv": [], "status": "ok", "stdout": "", "stderr": "", "started": NOW.timestamp(), "seconds": 0.1}
        rc = 0 if self.samples else 1
        probes = {name: {**one, "rc": rc} for name in names}
        head = {"version": 1, "origin": "simulated", "host": "n0", "boot_id": "b"}
        return json.dumps({**head, "started": NOW.timestamp(), "finished": NOW.timestamp(), "probes": probes})


def _asked(stdin: bytes) -> list[str]:
    """Return the names of a session's probes: its last line is `main(json.loads("…"))`."""
    call = ast.parse(stdin.decode().splitlines()[-1]).body[0]
    (text,) = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
    assert isinstance(text, str)
    return [probe["name"] for probe in json.loads(text)["probes"]]


def a_watch(shell: object) -> tuple[NodeWatch, NodeUnderTest]:
    state = replace(nodes(1)[0], bmc="")
    assert state.serial is not None
    host = HostAddress("n0", "10.0.0.1", "ops", "ssh-ed25519 AAAA", "key")
    watch = NodeWatch(
        shell,
        FixedClock(),
        shipped_suite().checks,
        lambda node, *_: expected(name=node.name),
        WatchPlan(HostRequirements()),  # type: ignore[arg-type,return-value]
    )
    return watch, NodeUnderTest(state, state.serial, host, SkuLimits(SKU, lab_limits()))


def test_one_sampler_serves_the_loads_that_follow_each_other() -> None:
    """It is started once, answers after each load, and ends when no load follows.

    The session that reads the node before the first load waits for it, too: a session of its own costs the node 30 ms.
    """
    shell = Host()
    watch, node = a_watch(shell)
    deadline = Deadline.after(600)
    for load in ("gpu_load", "stress_ng"):
        watch.end(node, load, watch.begin(node, deadline), deadline)
    assert shell.asked == ["load_sampler", "load_sampler_begun+dmesg", "load_samples+dmesg", "load_samples+dmesg"]
    assert node.sampler is not None
    thread = node.sampler.thread
    watch.finish(node)
    thread.join(600)
    assert not thread.is_alive()
    assert node.sampler is None


def test_a_sampler_that_did_not_answer_is_replaced() -> None:
    """Its session may have broken, or a second one took its place: the next load has a sampler of its own."""
    shell = Host(samples=False)
    watch, node = a_watch(shell)
    deadline = Deadline.after(600)
    watch.end(node, "gpu_load", watch.begin(node, deadline), deadline)
    assert node.sampler is not None
    first = node.sampler.thread
    watch.begin(node, deadline)
    assert shell.asked.count("load_sampler") == 2
    first.join(600)
    assert not first.is_alive()
    watch.finish(node)


def test_a_stopped_run_prints_no_traceback_of_its_sampler() -> None:
    """The load's own thread raises; the sampler's has nothing to add."""
    watch, node = a_watch(Stopped())
    with thread_errors() as found:
        with suppress(CancelledError):
            watch.begin(node, Deadline.after(60))
        for thread in threading.enumerate():
            if thread.name == "sampler":
                thread.join()
    assert found == []
