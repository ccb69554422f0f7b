"""burnin: check each node, then load the sound ones together until every one is proven, or its fault is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from clusterctl.burnin import schedule
from clusterctl.burnin.adapters import infiniband
from clusterctl.burnin.check import Expected
from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads import report
from clusterctl.burnin.loads.model import Answer, Member, Round, Trial, Wave
from clusterctl.burnin.probe import Readings, UnmeasuredError, argv_for, parse_readings
from clusterctl.burnin.suite import Suite
from clusterctl.burnin.sweep import Sweep, judge, sweep, unmeasured
from clusterctl.fleet.errors import CancelledError, ClusterctlError, EnvironmentBrokenError, ParseError
from clusterctl.fleet.finding import Evidence, Finding, Verdict, worst
from clusterctl.fleet.node import Serial, Verb
from clusterctl.fleet.sku import Sku
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Clock, Deadline, HostAddress, Shell
from clusterctl.steps.hosts import Reach
from clusterctl.steps.step import Acts, Outcome

COMPANY = 4
"""A batch smaller than this is measured beside proven nodes, where there are any."""
CONFIRMING_WAVES = 4
"""At most so many extra waves tell a bad node from its mates."""
Introduce = Callable[[Sequence[HostAddress], Deadline], Mapping[str, str]]
"""Lets the nodes of a group log in to each other; node name → why it could not, for those where it failed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a node of one SKU is judged by."""

    sku: Sku
    limits: Limits


@dataclass(slots=True)
class _Guest:
    """One node at its burn-in."""

    node: NodeState
    serial: Serial
    host: HostAddress
    kind: Kind
    findings: list[Finding] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    devices: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return worst(finding.verdict for finding in self.findings).admits

    @property
    def member(self) -> Member:
        return Member(self.node.name, self.host.address, self.devices)

    def keep(self, evidence: Iterable[Evidence]) -> None:
        self.evidence.update((item.digest, item) for item in evidence)

    def outcome(self, suite: Suite) -> Outcome:
        return Outcome(self.node.id, tuple(self.findings), tuple(self.evidence.values()), suite=suite.name)


class Burnin:
    """Runs a suite over a batch: checks on every node, loads on those whose checks passed."""

    verb = Verb.BURNIN
    minimum = 2
    linger_s = 5.0

    def __init__(
        self,
        shell: Shell,
        suite: Suite,
        kinds: Mapping[str, Kind],
        reach: Reach,
        introduce: Introduce,
        *,
        clock: Clock,
        driver_version: str,
        partners: Sequence[NodeState] = (),
    ) -> None:
        self._shell = shell
        self._suite = suite
        self._kinds = kinds
        self._reach = reach
        self._introduce = introduce
        self._clock = clock
        self._driver_version = driver_version
        self._partners = partners
        self._proven: dict[str, _Guest] = {}

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        del acts  # nothing is changed that outlives the run
        hosts, lost = self._reach.split(nodes, self.verb)
        yield from lost
        guests = self._guests(nodes, hosts)
        workers = len(guests) + len(self._partners) + COMPANY
        with ThreadPoolExecutor(workers, "burnin") as pool:
            plan = sweep(self._suite.checks)
            swept = {pool.submit(self._sweep, guest, plan, deadline): guest for guest in guests}
            for future in as_completed(swept):
                future.result()
                if not swept[future].sound:
                    yield self._unfit(swept[future])
            for kind in dict.fromkeys(guest.kind.sku.name for guest in guests):
                sound = [guest for guest in guests if guest.sound and guest.kind.sku.name == kind]
                yield from self._load(sound, pool, deadline)

    def _guests(self, nodes: Sequence[NodeState], hosts: Mapping[str, HostAddress]) -> list[_Guest]:
        return [
            _Guest(node, node.serial, hosts[node.name], self._kinds[node.sku])
            for node in nodes
            if node.name in hosts and node.serial is not None and node.sku in self._kinds
        ]

    def _company(self, guests: Sequence[_Guest], pool: ThreadPoolExecutor, deadline: Deadline) -> list[_Guest]:
        """Proven nodes to measure a small batch with: those of this run first, then the partners that were named.

        They are only measured with; nothing is reported of them.
        """
        wanted = COMPANY - len(guests)
        if wanted <= 0 or not self._suite.loads:
            return []
        sku = guests[0].kind.sku.name
        proven = [self._proven[name] for name in sorted(self._proven)]
        hosts, _ = self._reach.split(self._partners, self.verb)
        named = [guest for guest in self._guests(self._partners, hosts) if guest.node.name not in self._proven]
        plan = sweep(self._suite.checks)
        for done in [pool.submit(self._sweep, guest, plan, deadline) for guest in named]:
            done.result()
        return [guest for guest in (*proven, *named) if guest.sound and guest.kind.sku.name == sku][:wanted]

    def _unfit(self, guest: _Guest) -> Outcome:
        """A node whose checks did not pass is not loaded, and it is said so."""
        first = next(finding for finding in guest.findings if not finding.verdict.admits)
        cause = f"not run, because {first.check} did not pass"
        guest.findings += [
            Finding(load, Verdict.INCONCLUSIVE, cause=cause, root=first.root or first.key, deterministic=False)
            for load in self._suite.loads
        ]
        return guest.outcome(self._suite)

    def _sweep(self, guest: _Guest, plan: Sweep, deadline: Deadline) -> None:
        """All checks on one node; what went wrong on the way becomes each check's reason to be unmeasured."""
        sent = self._clock.now()
        answer, evidence = self._ask(guest.host, plan.stdin, deadline.within(plan.timeout), privileged=True)
        guest.keep(evidence)
        if isinstance(answer, str):
            remedy = (
                f"attach a console to {guest.node.name} ({guest.node.location}): does it run, and does sshd answer?"
            )
            guest.findings += unmeasured(plan.checks, answer, remedy)
            return
        expected = Expected(
            name=guest.node.name,
            serial=guest.serial,
            sku=guest.kind.sku,
            limits=guest.kind.limits,
            sent=sent,
            received=self._clock.now(),
            driver_version=self._driver_version,
            inventory=guest.node.inventory,
        )
        judged = judge(plan.checks, answer, expected)
        guest.findings += judged.findings
        guest.keep(judged.evidence)
        guest.devices = _devices(answer)

    def _ask(
        self, host: HostAddress, stdin: bytes, deadline: Deadline, *, privileged: bool
    ) -> tuple[Answer, tuple[Evidence, ...]]:
        """Readings of one session, or why there are none; never an exception for what a host does wrong."""
        try:
            ran = self._shell.run(host, argv_for(host.user, privileged=privileged), stdin, deadline)
        except (CancelledError, EnvironmentBrokenError):
            raise
        except ClusterctlError as error:
            return error.message, ()
        try:
            return parse_readings(ran.value.stdout), ()
        except ParseError as error:
            said = ran.value.stderr.strip()[-200:]
            return f"{error.message}{f' ({said})' if said else ''}", ran.evidence

    def _load(self, guests: Sequence[_Guest], pool: ThreadPoolExecutor, deadline: Deadline) -> Iterator[Outcome]:
        """The suite's loads over nodes of one SKU, and as many confirming waves as tell who is to blame."""
        if not guests:
            return
        everyone = [*guests, *self._company(guests, pool, deadline)]
        strangers = self._introduce([guest.host for guest in everyone], deadline)
        for guest in guests:
            if guest.node.name in strangers:
                guest.findings.append(_stranger(guest.node, strangers[guest.node.name]))
        friends = [guest for guest in everyone if guest.node.name not in strangers]
        trials = self._trials(friends, pool, deadline)
        limits = guests[0].kind.limits
        found = report.findings(trials, [guest.member for guest in friends], self._suite.loads, limits)
        for guest in guests:
            guest.findings += found.get(guest.node.name, ())
            if guest.sound:
                self._proven[guest.node.name] = guest
            yield guest.outcome(self._suite)

    def _trials(self, guests: Sequence[_Guest], pool: ThreadPoolExecutor, deadline: Deadline) -> list[Trial]:
        limits, user = guests[0].kind.limits if guests else None, self._reach.user
        if limits is None:
            return []
        members = [guest.member for guest in guests]
        by_name = {guest.node.name: guest for guest in guests}
        trials: list[Trial] = []
        for wave in schedule.plan(members, self._suite, limits, user):
            trials += self._wave(wave, by_name, pool, deadline)
        for load in self._suite.loads:
            for _ in range(CONFIRMING_WAVES):
                wave = schedule.confirm(load, trials, members, limits, user)
                if not wave:
                    break
                trials += self._wave(wave, by_name, pool, deadline)
        return trials

    def _wave(
        self, wave: Wave, guests: Mapping[str, _Guest], pool: ThreadPoolExecutor, deadline: Deadline
    ) -> Iterator[Trial]:
        """All rounds of a wave at once; every member's evidence stays with it."""
        asked = {
            (index, name): pool.submit(
                self._ask, guests[name].host, command.stdin, deadline.within(one.timeout), privileged=False
            )
            for index, one in enumerate(wave)
            for name, command in one.commands.items()
        }
        for index, one in enumerate(wave):
            answers = {name: future.result()[0] for (at, name), future in asked.items() if at == index}
            yield from _read(one, answers, guests)


def _read(one: Round, answers: Mapping[str, Answer], guests: Mapping[str, _Guest]) -> Iterator[Trial]:
    tried = schedule.read(one, answers, guests[one.members[0].name].kind.limits)
    for member in one.members:
        guests[member.name].keep(tried.evidence)
    yield from tried.trials


def _devices(readings: Readings) -> tuple[str, ...]:
    try:
        return tuple(adapter.name for adapter in infiniband(readings))
    except (UnmeasuredError, ParseError):
        return ()


def _stranger(node: NodeState, why: str) -> Finding:
    return Finding(
        "introduction",
        Verdict.INCONCLUSIVE,
        cause=f"the nodes of its group could not be made to know each other: {why}",
        remedy=f"run clusterctl configure on {node.name}, then burn it in again",
        deterministic=False,
    )
