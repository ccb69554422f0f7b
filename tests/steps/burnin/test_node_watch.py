"""The sampler's session while a node is loaded: an operator who stops the run reads no traceback of its thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.finding import Observed
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.burnin.node_watch import NodeWatch, WatchPlan
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.suites.suite import shipped_suite
from tests.lab_data import lab_limits
from tests.steps.burnin.test_burnin import SKU, nodes
from tests.steps.fakes import FixedClock


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


def test_a_stopped_run_prints_no_traceback_of_its_sampler() -> None:
    """The load's own thread raises; the sampler's has nothing to add."""
    state = replace(nodes(1)[0], bmc="")
    assert state.serial is not None
    host = HostAddress("n0", "10.0.0.1", "ops", "ssh-ed25519 AAAA", "key")
    node = NodeUnderTest(state, state.serial, host, SkuLimits(SKU, lab_limits()))
    watch = NodeWatch(
        Stopped(),
        FixedClock(),
        shipped_suite().checks,
        lambda *_: None,
        WatchPlan(HostRequirements()),  # type: ignore[arg-type,return-value]
    )
    with thread_errors() as found:
        with suppress(CancelledError):
            watch.begin(node, Deadline.after(60))
        for thread in threading.enumerate():
            if thread.name == "sampler":
                thread.join()
    assert found == []
