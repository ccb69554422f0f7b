"""Nodes that nobody gives work to, by the site's word: a cluster without a scheduler yet, or nodes set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.finding import Observed
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Occupancy, Use


@dataclass(frozen=True, slots=True)
class ListedScheduler:
    """Meets `ports.scheduler.Scheduler`: `names` are idle at all times, and nothing needs to be done to take them."""

    names: frozenset[str]

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        deadline.check("looking at the site's list")
        return Observed({name: Occupancy(Use.IDLE, "listed as idle") for name in sorted(self.names)})

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        del reason
        deadline.check("looking at the site's list")
        return {name: "the site does not list it as idle" for name in nodes if name not in self.names}

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        """A list keeps no reasons."""

    def give_back(self, nodes: Sequence[str], deadline: Deadline) -> Mapping[str, str]:
        del nodes, deadline  # nothing was taken from anybody
        return {}
