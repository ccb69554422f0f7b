"""Watches nodes during their loads: reads them before and after, samples them meanwhile, and adds what rose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from clusterctl.fleet.errors import CancelledError, ClaimLostError
from clusterctl.fleet.finding import Verdict
from clusterctl.ports import Clock, Deadline, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.node_under_test import (
    NodeUnderTest,
    SamplerSession,
    SessionFailure,
    WatchReading,
    read_probes,
    unknown,
)
from clusterctl_burnin.check import Check, Expected
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.slot_power import settled
from clusterctl_burnin.probe import Probe, script
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, LONGEST_S, sampler, sampler_begun
from clusterctl_burnin.sweep import SweepFindings, sweep
from clusterctl_burnin.watch import LoadRun, disturbed, judge, samples_wanted, watched

FRESH = timedelta(seconds=60)
"""An older reading is taken again before a load: what rose while the node waited does not belong to the load."""
SLOWER = 10
"""What costs more is read once in so many samples (node/programs/load_sampler.py)."""
ExpectedOf = Callable[[NodeUnderTest, datetime, datetime], Expected]
"""Returns what a node should be, for a session that was sent and answered at these times."""


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """What the programs on the node are given, and how many seconds are between two samples."""

    requirements: HostRequirements
    sample_s: float = 1.0


class NodeWatch:
    """Watches the loads of many nodes; many threads may share it. A reading after a load serves before the next one.

    A suite without a check that watches has no sessions for it.
    """

    def __init__(
        self,
        shell: Shell,
        clock: Clock,
        checks: Sequence[Check],
        expected_of: ExpectedOf,
        plan: WatchPlan,
    ) -> None:
        self._shell = shell
        self._clock = clock
        self._checks = watched(checks)
        self._expected_of = expected_of
        self._requirements, self._sample_s = plan.requirements, plan.sample_s

    def begin(self, node: NodeUnderTest, deadline: Deadline) -> datetime:
        """Read the node, where its last reading is not fresh; return the time (UTC) at which its load may start.

        A sampler that has answered in a fresh reading goes on for this load. The caller calls `finish` in any case.
        """
        now, sampled = self._clock.now(), samples_wanted(self._checks)
        stale = node.seen is None or isinstance(node.seen.readings, str) or now - node.seen.at > FRESH
        if self._checks and (stale or (sampled and not _samples(node))):
            node.seen = self._read(node, deadline, self._start_sampler(node, deadline) if sampled else LOAD_SAMPLES)
        return self._clock.now()

    def finish(self, node: NodeUnderTest) -> None:
        """End the node's sampler, where one runs: no load follows soon."""
        if node.sampler is not None:
            node.sampler.ended.set()
            node.sampler = None

    def _start_sampler(self, node: NodeUnderTest, deadline: Deadline) -> Probe:
        """Start a sampler in place of one that may run; return the probe that waits until it has begun."""
        self.finish(node)
        node.samplers += 1
        name, ended = "ab"[node.samplers % 2], threading.Event()
        own = replace(deadline.within(LONGEST_S), cancelled=ended)
        thread = threading.Thread(target=self._sample, args=(node, name, own), daemon=True, name="sampler")
        node.sampler = SamplerSession(thread, ended)
        thread.start()
        return sampler_begun(name)

    def _sample(self, node: NodeUnderTest, name: str, deadline: Deadline) -> None:
        """Run the sampler until it is ended; the readings after loads are INCONCLUSIVE where this session fails.

        Where the run is stopped, or has lost the node, the load itself ends with the error: this thread reports
        nothing.
        """
        stdin = script((sampler(self._sample_s, SLOWER * self._sample_s, name),))
        with suppress(CancelledError, ClaimLostError):
            read_probes(self._shell, node.host, stdin, deadline, privileged=True)

    def end(self, node: NodeUnderTest, load: str, started: datetime, deadline: Deadline) -> None:
        """Read the node again; add to it what was found since `begin`, and whether the load's result counts."""
        if not self._checks:
            return
        run = LoadRun(load, started, (self._clock.now() - started).total_seconds())
        before, sent = node.seen, self._clock.now()
        node.seen = self._read(node, deadline, LOAD_SAMPLES)
        expected = self._expected_of(node, sent, node.seen.at)
        found = self._judged(node, before, expected, run)
        node.keep(found.evidence)
        new = unknown(settled(found.findings, node.shared_slots), (*node.findings, *node.watched))
        node.watched += new
        mark = disturbed(load, [one for one in found.findings if one in new or one.verdict is not Verdict.INCONCLUSIVE])
        if mark is not None and (load not in node.disturbed or mark.verdict is Verdict.FAIL):
            node.disturbed[load] = mark

    def _judged(
        self, node: NodeUnderTest, before: WatchReading | None, expected: Expected, run: LoadRun
    ) -> SweepFindings:
        """Judge both readings; whatever the node's data causes is a finding of the watch."""
        first = before.readings if before else "it was not asked"
        last = node.seen.readings if node.seen else "it was not asked"
        try:
            return judge(self._checks, first, last, expected, run)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            return judge(self._checks, first, peer_error(error, node.name).message, expected, run)

    def _read(self, node: NodeUnderTest, deadline: Deadline, asked: Probe) -> WatchReading:
        """Read the node. `asked`: the probe of the sampler, where a check judges its samples."""
        checks = [
            replace(check, probes=tuple(asked if one == LOAD_SAMPLES else one for one in check.watch.probes))
            for check in self._checks
            if check.watch
        ]
        plan = sweep(checks, node.limits.patience, self._requirements)
        answer, _ = read_probes(self._shell, node.host, plan.stdin, deadline.within(plan.timeout), privileged=True)
        return WatchReading(answer.cause if isinstance(answer, SessionFailure) else answer, self._clock.now())


def _samples(node: NodeUnderTest) -> bool:
    """Return whether a sampler runs that has answered in the node's last reading."""
    if node.sampler is None or not node.sampler.thread.is_alive():
        return False
    readings = node.seen.readings if node.seen is not None else ""
    answered = None if isinstance(readings, str) else readings.probes.get(LOAD_SAMPLES.name)
    return answered is not None and answered.rc == 0
