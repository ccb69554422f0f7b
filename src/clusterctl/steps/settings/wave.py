"""One wave of machines to their baselines, all at once, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Baseline
from clusterctl.fleet.settings.history import ACTS
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.settings.apply_baseline import BaselineApplier, BaselineResult

_KEEP_S = 1.0


@dataclass(frozen=True, slots=True)
class SettleWork:
    """`baselines` by name of node; `seconds` that one wave may take."""

    settler: BaselineApplier
    baselines: Mapping[str, Baseline]
    seconds: float
    acts: frozenset[str] = ACTS

    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], acts: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]:
        """Each machine's outcome as soon as it is known; the claims are kept meanwhile."""
        with ThreadPoolExecutor(max(1, len(wave)), "settings") as pool:
            pending: set[Future[BaselineResult]] = {
                pool.submit(self.settler.settle, node, serial, self.baselines[node.name], acts, deadline)
                for node, serial in wave
            }
            while pending:
                done, pending = wait(pending, timeout=_KEEP_S, return_when=FIRST_COMPLETED)
                acts.lease.keep()
                for future in done:
                    yield future.result()
