"""A load of one node: it puts the node to work by itself, in one session, and judges what came of it as a check does.

It needs no partners, so a node that fails is the bad one; it runs before the loads that need partners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_burnin.check import EVERY_AREA, Area, Check, Judge, SamplesOf, no_samples
from clusterctl_burnin.fleet_stats import Metric
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe

ProbesOf = Callable[[Limits, int | None], tuple[Probe, ...]]
"""What to run by these limits, for so many seconds where a suite sets them, else as long as their method sets."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """One load of one node.

    judge             reads its own probes only, by name, and nothing of `Expected` that is of the session: what was
                      recorded is judged again with the checks' readings. A failure that a second run may not show
                      is not `deterministic`: the gate then has the burn-in run once more before it quarantines
    metrics, samples  what is compared over the fleet, and how it is read from the answers
    limits            the limits that it judges by
    needs             the areas that must be healthy for its result to mean anything: a failed check of another area
                      does not stop it
    about             the areas that its own failure puts in doubt; the loads that need them do not run after it
    """

    name: str
    probes: ProbesOf
    judge: Judge
    metrics: tuple[Metric, ...] = ()
    samples: SamplesOf = no_samples
    limits: tuple[LimitKey, ...] = ()
    needs: frozenset[Area] = EVERY_AREA
    about: frozenset[Area] = EVERY_AREA

    def check(self, limits: Limits, seconds: int | None = None) -> Check:
        """Return the load as a check of one session: it is run, kept and judged as those are."""
        return Check(self.name, self.probes(limits, seconds), self.judge, limits=self.limits)
