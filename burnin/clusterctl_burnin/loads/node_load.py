"""A load of one node: it puts the node to work by itself, in one session, and judges what came of it as a check does.

It needs no partners, so a node that fails is the bad one; it runs before the loads that need partners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_burnin.check import Check, Judge, SamplesOf, no_samples
from clusterctl_burnin.fleet_stats import Metric
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe

ProbesOf = Callable[[Limits, int | None], tuple[Probe, ...]]
"""What to run by these limits, for so many seconds where a suite says it, else for as long as their method says."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """One load of one node.

    judge             reads its own probes only, by name, and nothing of `Expected` that tells of the session: what was
                      recorded is judged again beside the checks' readings. A failure that a second run may not show
                      is not `deterministic`: the gate then has the burn-in run once more before it quarantines
    metrics, samples  what is compared over the fleet, and how it is read from the answers
    limits            the limits that it judges by
    """

    name: str
    probes: ProbesOf
    judge: Judge
    metrics: tuple[Metric, ...] = ()
    samples: SamplesOf = no_samples
    limits: tuple[LimitKey, ...] = ()

    def check(self, limits: Limits, seconds: int | None = None) -> Check:
        """The load as a check of one session: it is run, kept and judged as those are."""
        return Check(self.name, self.probes(limits, seconds), self.judge, limits=self.limits)
