"""Partner nodes of a run: idle gold nodes that the scheduler keeps jobs off meanwhile, or that were never published."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.partners import ENOUGH, choose
from clusterctl.fleet.payloads.node import StageAdvanced
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl.ports import Deadline, Journal, Pool
from clusterctl.ports.scheduler import PREFIX, Draining, Occupancy, Scheduler, Use

MAINTAIN = "maintain"
"""The purpose of drains for rolling changes: each plan itself gives its nodes back."""
SCHEDULER_S = 300.0
"""Seconds for the scheduler to answer one request."""


@dataclass(frozen=True, slots=True)
class PartnerLender:
    """Takes nodes out of work and gives them back. `purpose`: names the operation in the reason that users see."""

    context: SiteContext
    scheduler: Scheduler
    purpose: str

    @property
    def _reason(self) -> str:
        return f"{PREFIX}{self.purpose}:{self.context.run}"

    def occupancy(self) -> Mapping[str, Occupancy]:
        """Return the scheduler's report of all nodes that it knows, by name."""
        return self.scheduler.look(_soon()).value

    def idle_gold(self, needs: Mapping[str, int], apart: Collection[str] = ()) -> tuple[str, ...]:
        """Return idle gold nodes of the site, of each SKU as many as it needs, without those `apart`."""
        idle = {name for name, node in self.occupancy().items() if node.use is Use.IDLE}
        listed = idle & {node.name for node in self.context.site.nodes} - set(apart)
        now = CLOCK.now()
        gold = ((node.name, node.sku) for node in self.context.journal.summaries() if node.in_pool(now))
        return choose(((name, sku) for name, sku in gold if name in listed), needs)

    def take(self, names: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
        """Keep jobs off idle nodes. Return the nodes that could be had, and of the others why not."""
        refused = self.scheduler.take(names, self._reason, _soon()) if names else {}
        return [name for name in names if name not in refused], refused

    def lent(self) -> frozenset[str]:
        """Return the nodes that this run keeps jobs off, also those that a process had taken that began it before."""
        return frozenset(name for name, node in self.occupancy().items() if node.reason == self._reason)

    def drain(self, names: Sequence[str], reason: str) -> Draining:
        """Keep new jobs off nodes, also off those with jobs; `reason` is without the prefix of our reasons."""
        return self.scheduler.drain(names, f"{PREFIX}{reason}", _soon())

    def give_back(self, names: Sequence[str], fault: str = "") -> Mapping[str, str]:
        """Let the nodes have jobs again, those that were drained for this `fault`, too. Return who cannot, and why."""
        if not names:
            return {}
        return self.scheduler.give_back(names, _soon(), *((fault,) if fault else ()))

    def relabel(self, node: str, reason: str) -> None:
        """Keep jobs off the node for another reason of ours."""
        self.scheduler.relabel(node, f"{PREFIX}{reason}", _soon())

    @contextmanager
    def lend(
        self, names: Sequence[str], on_stuck: Callable[[str, str], None]
    ) -> Iterator[tuple[list[str], Mapping[str, str]]]:
        """Lend nodes for the time: what `take` returns. `on_stuck` receives each that cannot be given back, and why."""
        lent, refused = self.take(names)
        try:
            yield lent, refused
        finally:
            for name, why in self.give_back(lent).items():
                on_stuck(name, why)


def unpublished_partners(
    journal: Journal, pool: Pool, nodes: Sequence[NodeSummary], steps: Sequence[Step]
) -> list[NodeSummary]:
    """Return gold nodes of a run that was killed before it published them: no job can run on them.

    Without them the last node of that run would have no partner at its burn-in. At most `ENOUGH` of each SKU, and only
    where a node is on its way to its burn-in.
    """
    if Step.BURNIN not in steps or not any(node.next_step in steps for node in nodes):
        return []
    unpublished = {node.name: node for node in _of_killed_runs(journal, _unpublished(journal, pool))}
    skus = [(name, node.sku) for name, node in unpublished.items()]
    return [unpublished[name] for name in choose(skus, dict.fromkeys((sku for _, sku in skus), ENOUGH))]


def _unpublished(journal: Journal, pool: Pool) -> list[NodeSummary]:
    """Return the gold nodes that the pool lacks."""
    now = CLOCK.now()
    gold = {node.name: node for node in journal.summaries() if node.in_pool(now)}
    lacking = pool.lacks(gold)
    return [node for name, node in gold.items() if name in lacking]


def _of_killed_runs(journal: Journal, nodes: Sequence[NodeSummary]) -> list[NodeSummary]:
    """Return the nodes that were made gold by a run which never came to its end."""
    made = {
        event.subject: event.run
        for event in journal.histories([node.id for node in nodes], [Kind.STAGE_ADVANCED])
        if isinstance(event.payload, StageAdvanced) and event.payload.to is Stage.GOLD
    }
    ended = {run for run in set(made.values()) if _has_ended(journal, run)}
    return [node for node in nodes if node.id in made and made[node.id] not in ended]


def _has_ended(journal: Journal, run: str) -> bool:
    return Kind.RUN_FINISHED in {event.kind for event in journal.history(Stream.RUN, run)}


def _soon() -> Deadline:
    return Deadline.after(SCHEDULER_S)
