"""The plan of a fabric burn: stages that load every link, what they leave out and why, pairs, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from clusterctl.cabling.places import places_of
from clusterctl.cabling.routes import Routes, lay_routes
from clusterctl.cabling.routing import Routing, judge_routing
from clusterctl.cabling.stages import Stages, choose_stages
from clusterctl.cabling.tournament import DEFAULT_ROUNDS, PairRound, every_pair, tournament, unpaired
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric import Fabric
from clusterctl.fleet.forwarding import ForwardingTables, RoutingOutcome

_BLOCK = 64
"""LIDs that a switch tells at a time (InfiniBand Architecture 1.3 volume 1, LinearForwardingTable)."""
_UNKNOWN = "no table has a LID of this adapter: the subnet manager does not know it"
_CUT_SHORT = (
    "no table has a LID of this adapter: dump_fts leaves out the highest LID where that is a multiple of 64; "
    "give OpenSM's own opensm-lfts.dump as --fts (opensm -D 0x43 writes it)"
)


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long one stage and one round of pairs take; `rounds` of pairs, or with `every_pair` as many as that needs."""

    stage: timedelta = timedelta(minutes=10)
    pair_round: timedelta = timedelta(minutes=2)
    rounds: int = DEFAULT_ROUNDS
    every_pair: bool = False


@dataclass(frozen=True, slots=True)
class Unreached:
    """A directed link that no stage loads: `link` by the names of its ends."""

    link: str
    reason: str


@dataclass(frozen=True, slots=True)
class BurnPlan:
    """`lost`: pairs of the shift between which packets never arrive, by name; `unpaired`: hosts in no round."""

    routes: Routes
    routing: Routing
    stages: Stages
    unreached: tuple[Unreached, ...]
    rounds: tuple[PairRound, ...]
    unpaired: tuple[str, ...]
    lost: tuple[tuple[str, str], ...]
    duration: timedelta

    @property
    def reached(self) -> int:
        """Directed links that some stage loads."""
        return len(self.routes.links) - len(self.unreached)

    @property
    def sound(self) -> bool:
        """True where every directed link is reached, over tables that are balanced, and no packets get lost."""
        return not (self.unreached or self.lost or self.routes.unaddressed or self.routing.complaint)


def plan_burn(
    fabric: Fabric, tables: ForwardingTables, log: RoutingOutcome | None = None, lengths: Lengths | None = None
) -> BurnPlan:
    """Raises ParseError where tables and fabric do not belong together, UsageError where there is nobody to send."""
    lengths = lengths or Lengths()
    routes = lay_routes(fabric, tables)
    places = places_of(routes)
    if len(places.hosts) < 2:
        message = f"{len(places.hosts)} hosts have a route: a burn needs two"
        raise UsageError(message, where="burn plan", remedy="give tables and fabric of a subnet that is up")
    stages = choose_stages(routes, places)
    rounds = every_pair(places.hosts) if lengths.every_pair else tournament(places.hosts, lengths.rounds)
    return BurnPlan(
        routes=routes,
        routing=judge_routing(routes, stages.crowd, log),
        stages=stages,
        unreached=tuple(_unreached(routes, stages.unreached)),
        rounds=rounds,
        unpaired=unpaired(places.hosts, rounds),
        lost=tuple((str(source.name), str(target.name)) for source, target in stages.shift.lost),
        duration=lengths.stage * len(stages.stages) + lengths.pair_round * len(rounds),
    )


def check_window(plan: BurnPlan, window: timedelta) -> None:
    """Raises UsageError where the burn takes longer than the window."""
    if plan.duration <= window:
        return
    counts = f"{len(plan.stages.stages)} stages and {len(plan.rounds)} rounds of pairs take {plan.duration}"
    shorter = "give a longer --window, shorter stages (--stage) or fewer --rounds"
    remedy = f"mend the routing first ({plan.routing.complaint}), or {shorter}" if plan.routing.complaint else shorter
    raise UsageError(f"{counts}, the window is {window}", where="--window", remedy=remedy)


def _unreached(routes: Routes, numbers: frozenset[int]) -> Iterator[Unreached]:
    unaddressed = frozenset(routes.unaddressed)
    for number in sorted(numbers, key=routes.label):
        link = routes.links[number]
        if unaddressed & {link.source, link.target}:
            reason = _CUT_SHORT if len(routes.tables[0]) % _BLOCK == 0 else _UNKNOWN
        elif link.source.guid not in routes.switches and link.target.guid not in routes.switches:
            reason = "it joins two adapters: no forwarding table is about it"
        else:
            reason = "no route between two hosts uses it"
        yield Unreached(routes.label(number), reason)
