"""How well the hunt finds what is bad, beside two grids of rows and columns whose failures are intersected.

    python -m benchmarks.hunt [--trials 200] [--seed 1]

Each line is many simulated fleets. `found`: the likeliest explanation at the end is just what was bad; `named`: the
bad parts, and no others, reached a probability of 95 %; `accused`: good hosts that did, per hunt; `settled`: hunts that
said they were sure of everything. A node-round is one node in one round.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from clusterctl_burnin.hunting.hunt import Hunt
from clusterctl_burnin.hunting.model import Group, Noise, Part, Result, Rules
from clusterctl_burnin.loads.model import Outcome

Fails = Callable[[Group], bool]
REPEATABLE = Noise(false_alarm=1e-4)
"""What is assumed where the simulated test never goes wrong without a cause."""


@dataclass(frozen=True, slots=True)
class World:
    """How many hosts, how many bad ones (or one bad path), how often a bad part shows, how often a good group fails."""

    hosts: int
    bad: int
    shows: float = 1.0
    false_alarms: float = 0.0
    path: bool = False

    def __str__(self) -> str:
        what = "1 bad path" if self.path else f"{self.bad} bad"
        noise = f", shows {self.shows:g}, false alarms {self.false_alarms:.0%}" if self.false_alarms else ""
        return f"{what} of {self.hosts}{noise}"


@dataclass(frozen=True, slots=True)
class Hunted:
    found: bool
    named: bool
    settled: bool
    accused: int
    rounds: int
    node_rounds: int


def fleet(world: World, chance: random.Random) -> tuple[list[str], frozenset[Part], Fails]:
    names = [f"n{index:04d}" for index in range(world.hosts)]
    if world.path:
        bad = frozenset({tuple(sorted(chance.sample(names, 2)))})
    else:
        bad = frozenset((name,) for name in chance.sample(names, world.bad))

    def fails(group: Group) -> bool:
        members = set(group)
        shown = [chance.random() < world.shows for part in bad if members.issuperset(part)]
        return any(shown) or chance.random() < world.false_alarms

    return names, bad, fails


def hunted(world: World, chance: random.Random, rules: Rules) -> Hunted:
    names, bad, fails = fleet(world, chance)
    hunt = Hunt(chance.sample(names, len(names)), rules)
    rounds = node_rounds = 0
    while (asked := hunt.next()) is not None:
        rounds += 1
        node_rounds += len(asked.hosts)
        told = {group: Outcome.SLOW if fails(group) else Outcome.PASSED for group in asked.groups}
        hunt.tell(Result(asked.number, group, outcome) for group, outcome in told.items())
    answer = hunt.answer()
    named = {culprit.part for culprit in answer.bad}
    innocent = {name for part in named - bad for name in part}
    return Hunted(
        {part for part, _ in answer.best} == bad, named == bad, answer.settled, len(innocent), rounds, node_rounds
    )


def grid(world: World, chance: random.Random) -> Hunted:
    """Rows, then columns, and whoever failed in both: 6 × 8 and 8 × 6 for 48, likewise for others."""
    names, bad, fails = fleet(world, chance)
    chance.shuffle(names)
    width = next(w for w in range(math.isqrt(len(names) - 1) + 1, len(names) + 1) if len(names) % w == 0 or w * w > 100)
    rows = [tuple(names[at : at + width]) for at in range(0, len(names), width)]
    columns = [tuple(names[at::width]) for at in range(width)]
    failed = [{n for g in groups if fails(g) for n in g} for groups in (rows, columns)]
    named = {(name,) for name in failed[0] & failed[1]}
    return Hunted(named == bad, named == bad, True, len(named - bad), 2, 2 * len(names))


def line(title: str, results: Iterable[Hunted], seconds: float) -> str:
    found = list(results)
    share = 100 * sum(h.found for h in found) / len(found)
    named = 100 * sum(h.named for h in found) / len(found)
    decided = 100 * sum(h.settled for h in found) / len(found)
    rounds = sorted(h.rounds for h in found)
    spread = f"{statistics.mean(rounds):4.1f} ({rounds[len(rounds) // 2]}, at most {rounds[-1]})"
    cost = statistics.mean(h.node_rounds for h in found)
    accused = statistics.mean(h.accused for h in found)
    return (
        f"  {title:34} found {share:5.1f} %  named {named:5.1f} %  settled {decided:5.1f} %  rounds {spread:20}"
        f"  node-rounds {cost:7.0f}  accused {accused:5.3f}  {1000 * seconds / len(found):5.0f} ms"
    )


def worlds() -> Iterator[World]:
    for hosts, bad in itertools.product((48, 511), (1, 2, 3)):
        yield World(hosts, bad)
    for hosts in (48, 511):
        yield World(hosts, 0, 1.0, 0.02)
        yield World(hosts, 1, 0.7, 0.02)
        yield World(hosts, 2, 0.7, 0.02)
    yield World(48, 1, path=True)
    yield World(48, 1, 1.0, 0.02, path=True)


def methods(world: World) -> Iterator[tuple[str, Callable[[random.Random], Hunted]]]:
    yield "grid, failures intersected", lambda chance: grid(world, chance)
    plain = world.false_alarms == 0 and not world.path
    plans = [(1, 2), (1, 24)] if plain else [(4, 5), (5, 5), (6, 8), (4, 24), (8, 24)]
    noise = REPEATABLE if plain else Noise()
    if world.bad and not plain:
        told = Rules(screening=5, rounds=5, somebody=True)
        yield "likewise, told that somebody is bad, 5, 5", lambda chance: hunted(world, chance, told)
    for screening, rounds in plans:
        rules = Rules(screening=screening, rounds=rounds, noise=noise)
        title = f"hunt, {screening} screening, at most {rounds}"
        yield title, lambda chance, rules=rules: hunted(world, chance, rules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=0, help="only fleets of this size")
    options = parser.parse_args()
    for world in (w for w in worlds() if options.hosts in (0, w.hosts)):
        print(world)
        for title, method in methods(world):
            begin = time.monotonic()
            results = [method(random.Random(f"{options.seed}-{world}-{trial}")) for trial in range(options.trials)]
            print(line(title, results, time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    main()
