"""How long a site of many pods takes to gold, and what it waits for: a discrete-event model.

    python -m benchmarks.site_simulation [--nodes 32768] [--pods 64] [--controllers 8] [--seed 1] [--what-if]

Each machine goes through the six steps. What is shared is a resource with a queue: installs over all controllers, each
pod's uplink, the controllers' processors, the batches of discover, configure and burn-in of each run, and technicians.
Machines that do not boot, or fail later, wait for a technician. The same seed gives the same answer.

Times that this project has measured are in `Figures`, with their source; what it has not measured is in `Assumed`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import simpy

HOUR = 3600.0
DAY = 24 * HOUR
WEEK = 7 * DAY
Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Measured, in seconds; docs/reference/measured.md has each.

    cpu_*        of a controller for one node: the sweep of 511 BMCs (12 s) and one inventory (172 ms); the install step
                 (57 s for 511); a play by the host itself; one check; the judgement of one burn-in (7.7 s for 511)
    bmc_requests to one BMC for its inventory, at `bmc_s` each
    """

    cpu_discover: float = 12 / 511 + 0.172
    cpu_install: float = 57 / 511
    cpu_configure: float = 0.155
    cpu_check: float = 0.0225
    cpu_judge: float = 7.7 / 511
    bmc_requests: int = 37
    bmc_s: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """Not measured here: a data centre's times, in seconds, and shares.

    post, write_os  of the lab's machines, after GPU servers (benchmarks/install_waves.py)
    image           bytes that one install reads through the pod's uplink, which has `uplink` bytes a second
    configure       of a play on a host of its own
    burnin          the loads of the suite `bootstrap`: 2.5 min alone, 15 min in pairs, the rest groups and checks
    no_boot         share of new machines that do not boot; `weekly` share of gold ones that fail in a week: the issue's
    walk, repair    until a technician stands there; at the machine
    """

    post: float = 300.0
    write_os: float = 240.0
    image: float = 3e9
    uplink: float = 25e9 / 8
    configure: float = 600.0
    burnin: float = 50 * 60.0
    no_boot: float = 0.10
    weekly: float = 0.03
    walk: float = 900.0
    repair: float = 2700.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an operator decides. Limits as in site.yml; the batches hold for each run, one of which a controller has.

    spares       machines above `nodes`, which count towards its gold
    technicians  at work at any time
    """

    nodes: int = 32768
    pods: int = 64
    controllers: int = 8
    cores: int = 2
    installs: int = 2048
    downloads: int = 16
    discover: int = 64
    configure: int = 50
    burnin: int = 4096
    canary: bool = True
    spares: int = 0
    technicians: int = 8
    weeks: int = 4
    seed: int = 1
    assumed: Assumed = field(default_factory=Assumed)
    figures: Figures = field(default_factory=Figures)


class Shared:
    """A resource with a queue that notes for how long its units were busy, and how long others waited for one."""

    def __init__(self, env: simpy.Environment, units: int) -> None:
        self._env = env
        self._resource = simpy.Resource(env, units)
        self.units = units
        self.busy = 0.0
        self.waited = 0.0

    def use(self, seconds: float) -> Process:
        """Wait for a unit, and hold it so long."""
        asked = self._env.now
        with self._resource.request() as turn:
            yield turn
            self.waited += self._env.now - asked
            yield self._env.timeout(seconds)
            self.busy += seconds

    @contextmanager
    def held(self) -> Iterator[simpy.Event]:
        """Hold a unit for the time: the caller yields the event, which is its turn."""
        asked = self._env.now
        with self._resource.request() as turn:
            yield turn
            began = getattr(turn, "usage_since", None)
            if began is not None:
                self.waited += began - asked
                self.busy += self._env.now - began


@dataclass(frozen=True, kw_only=True)
class Use:
    """How a kind of resource was used until 90 % were gold: `share` of all its units' time; `wait` of one machine."""

    name: str
    share: float
    wait: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`half`, `most` and `all`: hours until 50, 90 and 99 % of the wanted nodes were gold; None: not in the time."""

    half: float | None
    most: float | None
    all: float | None
    uses: tuple[Use, ...]
    technician_hours: float
    gold_share: float

    @property
    def bottleneck(self) -> str:
        """The resource for which machines waited longest."""
        return max(self.uses, key=lambda use: use.wait).name


class SiteModel:
    """One run of the model."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.env = simpy.Environment()
        self._random = random.Random(plan.seed)
        one, runs = self._shared, plan.controllers
        self._installs = one(plan.installs)
        self._downloads = [one(plan.downloads) for _ in range(plan.pods)]
        self._cpus = [one(plan.cores) for _ in range(runs)]
        self._steps = {
            step: [one(size) for _ in range(runs)]
            for step, size in (("discover", plan.discover), ("configure", plan.configure), ("burn-in", plan.burnin))
        }
        self._technicians = one(plan.technicians)
        self._canary = self.env.event()
        self._gold = 0
        self._reached: dict[int, float] = {}
        self._uses: tuple[Use, ...] = ()
        self._gold_seconds = 0.0
        self._changed = 0.0

    def _shared(self, units: int) -> Shared:
        return Shared(self.env, units)

    def run(self) -> Outcome:
        """Run for the plan's weeks."""
        for number in range(self.plan.nodes + self.plan.spares):
            self.env.process(self._machine(number))
        end = self.plan.weeks * WEEK
        self.env.run(until=end - WEEK)
        self._count(0)
        self._gold_seconds = 0.0
        self.env.run(until=end)
        self._count(0)
        return Outcome(
            half=self._hours(50),
            most=self._hours(90),
            all=self._hours(99),
            uses=self._uses or self._used(),
            technician_hours=self._technicians.busy / HOUR,
            gold_share=self._gold_seconds / WEEK / self.plan.nodes,
        )

    def _hours(self, percent: int) -> float | None:
        at = self._reached.get(percent)
        return None if at is None else at / HOUR

    def _count(self, change: int) -> None:
        now = self.env.now
        self._gold_seconds += min(self._gold, self.plan.nodes) * (now - self._changed)
        self._changed = now
        self._gold += change
        for percent in (50, 90, 99):
            if percent not in self._reached and self._gold * 100 >= self.plan.nodes * percent:
                self._reached[percent] = now
                if percent == 90:
                    self._uses = self._used()

    def _used(self) -> tuple[Use, ...]:
        kinds: dict[str, Sequence[Shared]] = {
            "installs at once": [self._installs],
            "downloads of a pod": self._downloads,
            "controllers' processors": self._cpus,
            **{f"{step} at once": shared for step, shared in self._steps.items()},
            "technicians": [self._technicians],
        }
        machines = self.plan.nodes + self.plan.spares
        return tuple(
            Use(
                name=name,
                share=sum(one.busy for one in some) / (sum(one.units for one in some) * self.env.now),
                wait=sum(one.waited for one in some) / machines,
            )
            for name, some in kinds.items()
        )

    def _machine(self, number: int) -> Process:
        """The life of one machine; machines of a pod are served by one controller."""
        pod = number % self.plan.pods
        controller = pod % self.plan.controllers
        yield from self._discovered(controller)
        if self.plan.canary and number > 0:
            yield self._canary
        while not (yield from self._installed(pod, controller)):
            yield from self._repaired()
        if number == 0:
            self._canary.succeed()
        while True:
            yield from self._proven(controller)
            self._count(+1)
            yield self.env.timeout(self._random.expovariate(self.plan.assumed.weekly / WEEK))
            self._count(-1)
            yield from self._repaired()

    def _discovered(self, controller: int) -> Process:
        figures = self.plan.figures
        yield from self._steps["discover"][controller].use(figures.bmc_requests * self._about(figures.bmc_s))
        yield from self._cpus[controller].use(figures.cpu_discover)

    def _installed(self, pod: int, controller: int) -> Generator[simpy.Event, Any, bool]:
        """Boot, download, write, boot again; return whether the machine came up. The first one always does."""
        assumed = self.plan.assumed
        first = self.plan.canary and not self._canary.triggered
        boots = first or self._random.random() >= assumed.no_boot
        with self._installs.held() as turn:
            yield turn
            yield from self._cpus[controller].use(self.plan.figures.cpu_install)
            yield self.env.timeout(self._about(assumed.post))
            if boots:
                rate = assumed.uplink / self.plan.downloads
                yield from self._downloads[pod].use(assumed.image / rate)
                yield self.env.timeout(self._about(assumed.write_os) + self._about(assumed.post))
        return boots

    def _proven(self, controller: int) -> Process:
        """Configure, cable, burn in, admit."""
        assumed, figures, cpus = self.plan.assumed, self.plan.figures, self._cpus[controller]
        yield from cpus.use(figures.cpu_configure)
        yield from self._steps["configure"][controller].use(self._about(assumed.configure))
        yield from cpus.use(figures.cpu_check)
        yield from self._steps["burn-in"][controller].use(self._about(assumed.burnin))
        yield from cpus.use(figures.cpu_judge)

    def _repaired(self) -> Process:
        yield from self._technicians.use(self._about(self.plan.assumed.walk) + self._about(self.plan.assumed.repair))

    def _about(self, seconds: float) -> float:
        """Return a time around it: from 0.8 to 1.4 times as long, most often a little less."""
        return seconds * self._random.triangular(0.8, 1.4, 0.95)


def simulated(plan: Plan) -> Outcome:
    """Run the model of one plan."""
    return SiteModel(plan).run()


def what_ifs(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plan, and plans that differ from it in one decision each."""
    yield "as planned", plan
    yield "shipped limits (32 installs, 64 burn-ins)", replace(plan, installs=32, burnin=64)
    yield "512 installs at once", replace(plan, installs=512)
    yield "no canary", replace(plan, canary=False)
    yield "3 % spares", replace(plan, spares=plan.nodes * 3 // 100)
    yield "32 technicians", replace(plan, technicians=32)
    yield "400 configured at once a run", replace(plan, configure=400)
    yield "a tenth of the uplink", replace(plan, assumed=replace(plan.assumed, uplink=plan.assumed.uplink / 10))
    yield "one controller", replace(plan, controllers=1)


def line(name: str, found: Outcome) -> str:
    """Return one row of a table."""
    hours = "  ".join("     –" if value is None else f"{value:6.1f}" for value in (found.half, found.most, found.all))
    uplink = next(use.share for use in found.uses if use.name == "downloads of a pod")
    figures = f"{uplink:7.1%}  {found.technician_hours:9.0f}  {found.gold_share:6.1%}"
    return f"{name:42}{hours}  {figures}  {found.bottleneck}"


def main() -> None:
    """Print the plan's outcome, what its resources did, and, where asked, what other decisions lead to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("nodes", "pods", "controllers", "weeks", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan(), name))
    parser.add_argument("--what-if", action="store_true", help="also with other decisions")
    given = vars(parser.parse_args())
    asked = given.pop("what_if")
    plan = Plan(**given)
    print(f"{'plan':42}{'50 %':>6}  {'90 %':>6}  {'99 %':>6}  {'uplink':>7}  {'tech. h':>9}  {'gold':>6}  longest wait")
    found = simulated(plan)
    print(line("as planned", found), flush=True)
    for name, other in list(what_ifs(plan))[1:] if asked else []:
        print(line(name, simulated(other)), flush=True)
    print("\nuntil 90 % were gold, as planned:")
    for use in found.uses:
        print(f"  {use.name:26}busy {use.share:6.1%}, a machine waited {use.wait / 60:7.1f} min")


if __name__ == "__main__":
    sys.exit(main())
