"""How well the hunt of a shipped suite finds what is bad, in simulated fleets.

    python -m benchmarks.hunt [--suite bootstrap] [--hosts 48] [--trials 500] [--world host-1 …] [--seed 1]

Each line is one world: what is bad in many simulated fleets, each hunted by all loads of several nodes that the suite
has, with the shipped limits. All shares have 95 % intervals (Wilson).

named       the loads together named just what is bad, as what it is
false       a load named something that is good
wrong       every load was settled and nearly all pairs had met, but not just what is bad was named
--first-trial: number of the first simulated fleet. Two calls with different fleets can be added up.

host-time   seconds that a host spends in runs of these loads; with the seconds that a run takes to start in brackets
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials
from clusterctl_burnin.hunting.answer import MOST_UNMET
from clusterctl_burnin.hunting.model import Group, HuntPart, PartKind, host, pair
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.limits.reading import parse_limits
from clusterctl_burnin.loads.model import Trial, TrialOutcome
from clusterctl_burnin.registry import GROUP_LOADS
from clusterctl_burnin.suites.suite import shipped_suite

SHOWS = 0.7
"""How often a bad host fails a run. A bad leaf, its uplinks and a bad pair fail nine runs of ten."""
SHARED_SHOWS = 0.9
NOISE = 0.001
BURST_NOISE, BURST_SECONDS, BURST_BEGINS = 0.5, 60.0, 40.0
"""Each run that touches the burst fails with this probability; it begins in the first seconds of the hunt."""
RAILS = 2
"""Simulated rails of a load that reports them. A host's fault shows on one, that of a leaf on all, or on one."""
ADAPTER_GBIT, GPU_BUSBW, RAIL_BUSBW = 392e9, 367e9, 47e9
START_SECONDS = {"ib_write_bw": 2.0, "all_reduce": 8.0, "all_reduce_rail": 8.0}
"""Assumed, not measured: log in, start the processes, connect."""
LIMITS_FILE = "h100-sxm-ndr400.yml"


@dataclass(frozen=True, slots=True)
class World:
    """What is bad: `count` of a kind. `load`: only this load shows it; empty: all do."""

    name: str
    kind: PartKind | None = None
    count: int = 1
    one_rail: bool = False
    burst: bool = False
    load: str = ""


WORLDS = {
    world.name: world
    for world in (
        World("nothing"),
        World("burst", burst=True),
        *(World(f"host-{count}", PartKind.HOST, count, one_rail=True) for count in (1, 2, 3)),
        *(World(f"host-{count}-all_reduce", PartKind.HOST, count, load="all_reduce") for count in (1, 2, 3)),
        World("leaf", PartKind.LEAF),
        World("leaf-rail", PartKind.LEAF, one_rail=True),
        World("uplink", PartKind.UPLINK),
        World("pair", PartKind.PAIR),
    )
}


class Fleet:
    """Hosts on leaves of 8 (of 32 from 65 hosts on), and what is bad among them."""

    def __init__(self, world: World, hosts: int, chance: random.Random) -> None:
        self.world = world
        self._chance = chance
        self.names = [f"n{index:04d}" for index in range(hosts)]
        size = 8 if hosts <= 64 else 32
        self.topology = {name: f"leaf{index // size:02d}" for index, name in enumerate(self.names)}
        self.bad = frozenset(self._parts())
        self.rail = chance.randrange(RAILS)
        begin = chance.uniform(0, BURST_BEGINS)
        self._burst = (begin, begin + BURST_SECONDS) if world.burst else (0.0, 0.0)

    def _parts(self) -> Iterator[HuntPart]:
        match self.world.kind:
            case PartKind.HOST:
                yield from map(host, self._chance.sample(self.names, self.world.count))
            case PartKind.PAIR:
                yield pair(*self._chance.sample(self.names, 2))
            case PartKind.LEAF | PartKind.UPLINK as kind:
                leaf = self._chance.choice(sorted(set(self.topology.values())))
                yield HuntPart(kind, tuple(name for name in self.names if self.topology[name] == leaf), leaf)

    def failed_rails(self, load: str, group: Group, begin: float, end: float) -> frozenset[int]:
        """Return the rails on which a run fails."""
        members = frozenset(group)
        noise = BURST_NOISE if begin < self._burst[1] and end > self._burst[0] else NOISE
        if self._chance.random() < noise:
            return frozenset(range(RAILS))
        if self.world.load in ("", load) and any(self._shows(part, members) for part in self.bad):
            return frozenset({self.rail} if self.world.one_rail else range(RAILS))
        return frozenset()

    def _shows(self, part: HuntPart, members: frozenset[str]) -> bool:
        match part.kind:
            case PartKind.HOST | PartKind.PAIR:
                touched = members.issuperset(part.names)
            case PartKind.LEAF:
                touched = not members.isdisjoint(part.names)
            case _:
                touched = not members.isdisjoint(part.names) and not members.issubset(part.names)
        return touched and self._chance.random() < (SHOWS if part.kind is PartKind.HOST else SHARED_SHOWS)


@dataclass(frozen=True, slots=True)
class Hunted:
    named: bool
    accused: bool
    settled: bool
    load_seconds: float
    all_seconds: float


def plan(suite: str, fleet: Fleet) -> CampaignPlan:
    return CampaignPlan(shipped_suite(suite), limits(), "ops", fleet.topology)


def limits() -> Limits:
    text = (files("clusterctl_burnin") / "limits" / LIMITS_FILE).read_text(encoding="utf-8")
    return parse_limits(text, where=LIMITS_FILE)


def run_seconds(hunt: CampaignPlan, load: str) -> float:
    """Return how long a healthy run of the load takes, without its start."""
    methods, suite = hunt.limits.methods, hunt.suite
    if load == "ib_write_bw":
        bits = methods.ib_write_bw.iterations * methods.ib_write_bw.message_bytes * 8
        return suite.pair_seconds or bits / ADAPTER_GBIT
    method, rate = (methods.all_reduce, GPU_BUSBW) if load == "all_reduce" else (methods.all_reduce_rail, RAIL_BUSBW)
    return (suite.group_iterations or method.iterations) * 2 * method.message_bytes / rate


def hunted(suite: str, fleet: Fleet) -> Hunted:
    """Hunt with all loads of the suite, a round of each in turn, as the step does."""
    one = plan(suite, fleet)
    campaigns = one.campaigns(fleet.names)
    now = load_seconds = all_seconds = 0.0
    while True:
        ran = 0.0
        for campaign in campaigns:
            asked = campaign.next()
            if asked is None:
                continue
            working = run_seconds(one, campaign.load)
            took = working + START_SECONDS[campaign.load]
            for group in asked.groups:
                rails = fleet.failed_rails(campaign.load, group, now + ran, now + ran + took)
                campaign.add(GroupTrials(asked.number, group, tuple(_trials(campaign.load, group, rails))))
            ran += took
            load_seconds += working * sum(map(len, asked.groups))
            all_seconds += took * sum(map(len, asked.groups))
        now += ran
        insisting = [campaign for campaign in campaigns if not ran and campaign.insist()]
        if not ran and not insisting:
            return _hunted(fleet, campaigns, load_seconds / len(fleet.names), all_seconds / len(fleet.names))


def _trials(load: str, group: Group, failed: frozenset[int]) -> Iterator[Trial]:
    rails: Sequence[int | None] = range(RAILS) if GROUP_LOADS[load].by_rail else (None,)
    for rail in rails:
        fails = bool(failed) if rail is None else rail in failed
        yield Trial(load, group, TrialOutcome.SLOW if fails else TrialOutcome.PASSED, {}, rail=rail, value=1.0)


def _hunted(fleet: Fleet, campaigns: Sequence[Campaign], load_seconds: float, all_seconds: float) -> Hunted:
    answers = [campaign.measured().answer for campaign in campaigns]
    named = {culprit.part for answer in answers for culprit in answer.bad}
    common = any(answer.common for answer in answers)
    rails = {rail for answer in answers for c in answer.bad for rail in c.rails if rail is not None}
    right_rails = not fleet.world.one_rail or rails <= {fleet.rail}
    settled = all(answer.settled for answer in answers) and min(answer.unmet for answer in answers) <= MOST_UNMET
    right = named == fleet.bad and right_rails and not common
    return Hunted(right, bool(named - fleet.bad) or common or not right_rails, settled, load_seconds, all_seconds)


def fleets(world: World, hosts: int, trials: range, seed: int) -> Iterator[Fleet]:
    for trial in trials:
        yield Fleet(world, hosts, random.Random(f"{seed}-{world.name}-{hosts}-{trial}"))


def share(results: Sequence[Hunted], counts: Callable[[Hunted], bool]) -> str:
    """Return a share with its 95 % interval (Wilson)."""
    low, high = interval(sum(map(counts, results)), len(results))
    return f"{sum(map(counts, results)) / len(results):6.1%} ({low:.1%}–{high:.1%})"


def interval(count: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    rate, scale = count / of, 1 + z * z / of
    centre = (rate + z * z / (2 * of)) / scale
    half = z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)


def line(title: str, results: Sequence[Hunted], seconds: float) -> str:
    mean = replace(
        results[0],
        load_seconds=sum(h.load_seconds for h in results) / len(results),
        all_seconds=sum(h.all_seconds for h in results) / len(results),
    )
    return (
        f"| {title:24} | {len(results):5} | {share(results, lambda h: h.named):24} "
        f"| {share(results, lambda h: h.accused):22} | {share(results, lambda h: h.settled and not h.named):22} "
        f"| {mean.load_seconds:6.1f} ({mean.all_seconds:.1f}) | {seconds / len(results):5.2f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="bootstrap")
    parser.add_argument("--hosts", type=int, default=48)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--first-trial", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", nargs="*", choices=sorted(WORLDS), default=list(WORLDS))
    options = parser.parse_args()
    gc.disable()  # a hunt has no reference cycles, and the collector takes a quarter of its time
    print(f"| {options.suite}, {options.hosts} hosts | hunts | named | false | wrong | host-time | of the hunt |")
    print("|---|---|---|---|---|---|---|")
    for name in options.world:
        begin = time.monotonic()
        trials = range(options.first_trial, options.first_trial + options.trials)
        found = fleets(WORLDS[name], options.hosts, trials, options.seed)
        results = [hunted(options.suite, fleet) for fleet in found]
        print(line(name, results, time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    main()
