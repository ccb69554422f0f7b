"""Whether the tables are those of a fat tree, or what a routing engine fell back to without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median_high

from clusterctl.cabling.burn.layout import layout_of
from clusterctl.cabling.burn.pair_rounds import DEFAULT_ROUNDS, PairRound, every_pair, rounds_by_distance, unpaired
from clusterctl.cabling.burn.routes import NOWHERE, DirectedLink, Endpoint, Routes, lay_routes
from clusterctl.cabling.burn.stages import Stages, choose_stages, separating_stage
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.topology import Fabric, ForwardingTables, RoutingOutcome
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid

_SLACK = 2
"""Flows on the fullest link under the best shift, over what the leaves' uplinks force, that a fat tree's tables never
pass: measured 1 on 512 hosts and 2 on 511 with ftree, 9 on 511 with 20 cables cut and minhop.
"""


@dataclass(frozen=True, slots=True)
class Routing:
    """`engine` is empty without a log. `worst`: flows on the fullest link under the best shift; `forced`: how many
    of them too few uplinks explain. `problem` is empty where the tables are balanced.
    """

    engine: str
    worst: int
    forced: int
    problem: str
    adaptive: bool = False


def judge_routing(routes: Routes, worst: int, log: RoutingOutcome | None) -> Routing:
    """Judge the routing. `worst`: `Stages.crowd`."""
    forced = _forced(routes)
    engine = log.engine if log else ""
    unbalanced = worst > _SLACK * forced
    return Routing(engine, worst, forced, _problem(log, worst, unbalanced), bool(log and log.adaptive))


def _problem(log: RoutingOutcome | None, worst: int, unbalanced: bool) -> str:
    load = f"the best shift puts {worst} flow{'s' * (worst != 1)} on one link"
    if log and log.failures and "ftree" not in log.engine:
        why = "; ".join(log.failures)
        return f"the subnet manager fell back to {log.engine}: {why}. {load.capitalize()}"
    if not unbalanced:
        return ""
    origin = f"though {log.engine} made the tables" if log else "as after a silent fall-back from ftree to minhop"
    return f"{load}, {origin}: these tables do not spread traffic as a fat tree's do"


def _forced(routes: Routes) -> int:
    """Return hosts' ports per uplink of the usual leaf, rounded up; 1 where no leaf has uplinks."""
    hosts = Counter(end.leaf for end in routes.endpoints)
    uplinks = Counter(
        tail for tail, head in zip(routes.tails, routes.heads, strict=True) if tail in hosts and head != NOWHERE
    )
    return median_high(-(-hosts[leaf] // uplinks[leaf]) for leaf in uplinks) if uplinks else 1


_BLOCK = 64
"""LIDs that a switch reports at a time (InfiniBand Architecture 1.3 volume 1, LinearForwardingTable)."""
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
    def balanced(self) -> bool:
        """True where every directed link is reached, over tables that are balanced, and no packets get lost."""
        return not (self.unreached or self.lost or self.routes.unaddressed or self.routing.problem)


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a fabric is burned.

    adapters  the adapters that send and receive, by node GUID, with host and device; None: all of the fabric
    done      directed links that are loaded already
    suspects  directed links of slow flows: one stage is planned that separates them
    wanted    directed links that are to be loaded; None: all that a route crosses
    """

    adapters: Mapping[Guid, PortName] | None = None
    done: frozenset[DirectedLink] = frozenset()
    suspects: frozenset[DirectedLink] = frozenset()
    wanted: frozenset[DirectedLink] | None = None

    def endpoints(self, routes: Routes) -> tuple[Endpoint, ...]:
        """Return the endpoints that take part, by the names that their hosts give them."""
        if self.adapters is None:
            return routes.endpoints
        known = self.adapters
        return tuple(replace(end, name=known[end.port.guid]) for end in routes.endpoints if end.port.guid in known)


def plan_burn(
    fabric: Fabric,
    tables: ForwardingTables,
    log: RoutingOutcome | None = None,
    lengths: Lengths | None = None,
    scope: Scope | None = None,
) -> BurnPlan:
    """Return the plan. Raise ParseError where tables and fabric do not match, UsageError where no host can send."""
    lengths, scope = lengths or Lengths(), scope or Scope()
    routes = lay_routes(fabric, tables)
    routes = replace(routes, endpoints=scope.endpoints(routes))
    places = layout_of(routes)
    if len(places.hosts) < 2:
        message = f"{len(places.hosts)} hosts have a route: a burn needs two"
        raise UsageError(message, where="burn plan", remedy="give tables and fabric of a subnet that is up")
    done, suspects = link_numbers(routes, scope.done), link_numbers(routes, scope.suspects)
    wanted = None if scope.wanted is None else link_numbers(routes, scope.wanted)
    stages = choose_stages(routes, places, done, wanted)
    if suspects:
        stages = replace(stages, stages=(separating_stage(routes, places, suspects),))
    rounds = every_pair(places.hosts) if lengths.every_pair else rounds_by_distance(places.hosts, lengths.rounds)
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
    """Raise UsageError where the burn takes longer than the window."""
    if plan.duration <= window:
        return
    counts = f"{len(plan.stages.stages)} stages and {len(plan.rounds)} rounds of pairs take {plan.duration}"
    shorter = "give a longer --window, shorter stages (--stage) or fewer --rounds"
    remedy = f"repair the routing first ({plan.routing.problem}), or {shorter}" if plan.routing.problem else shorter
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


def link_numbers(routes: Routes, links: Container[DirectedLink]) -> frozenset[int]:
    """Return the numbers of these directed links."""
    return frozenset(number for number, link in enumerate(routes.links) if link in links)
