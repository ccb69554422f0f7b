"""New software for managed switches, in waves: nothing in use is cut off, and each wave is proven before the next.

Each switch is upgraded under an intent in the fabric's history; a run that is killed is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from clusterctl.cabling.health.findings import FabricLabels, fabric_labels
from clusterctl.cabling.switch_waves import SwitchWaves, WaveRules, adapters_behind, plan_waves
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.alarms import ManagedSystem
from clusterctl.fleet.fabric.port_acts import CLAIM
from clusterctl.fleet.fabric.switch_acts import SwitchUpgrade, switch_upgrades
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Guid
from clusterctl.fleet.selectors import matching
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.fabric_firmware import busy_hosts, hosts_behind, masters_seen
from clusterctl.operations.operation import Control, Effect, Event, Failure, Outcome, Preview, Result
from clusterctl.operations.partners import PartnerLender
from clusterctl.ports import Claim, Deadline, JobReader, SystemReader
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer
from clusterctl.ports.fabric import SwitchImage, SwitchUpdater
from clusterctl.ports.scheduler import PREFIX, Occupancy, Use
from clusterctl.steps.cable.isolation import ports_out
from clusterctl.steps.cable.link_health import DAY, LinkCollector
from clusterctl.steps.cable.switch_upgrade import UPGRADE, ChosenSwitch, SwitchUpgrader, UpgradeServices
from clusterctl.steps.executor.lease import Lease, kept, sole_claim

NAME = "fabric upgrade"
PURPOSE = "fabric-upgrade"
"""Names the operation in the reason of its drains."""
LOOK_S = 600.0
QUIET_S = 900.0
"""Seconds that a wave waits for a busy subnet manager; then it is smaller."""
QUIET_EVERY_S = 5.0
_FINER = 4
"""The pace is asked in units of a part of a switch, so that one switch can be slowed down, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequest:
    """Which switches get which software.

    to            version, as UFM shows it
    switches      names and patterns; none: all that UFM can update
    at_once       switches of a wave at most; the first wave is one
    stop_percent  share of failed switches above which no further wave begins
    back_s        seconds in which the switches of a wave must be back
    settle_s      seconds over which the counters of their links are watched then
    """

    to: str
    reason: str
    switches: tuple[str, ...] = ()
    at_once: int = 4
    stop_percent: float = 0.0
    back_s: float = 3600.0
    settle_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchServices:
    """The site's UFM, and the image that it lets switches load. `pace`: how many of so many may restart at present."""

    systems: SystemReader
    jobs: JobReader
    updater: SwitchUpdater
    image: SwitchImage
    pace: Callable[[int], int] | None = None


@dataclass(frozen=True, slots=True)
class ChosenSwitches:
    """`open`: what a killed run began; `wanted`: what gets the software; `skipped`: why others do not, by name."""

    open: tuple[SwitchUpgrade, ...]
    wanted: Mapping[Guid, ChosenSwitch]
    skipped: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SwitchSoftware:
    """The upgrade of a site's switches."""

    context: SiteContext
    services: SwitchServices
    timer: Timer = SYSTEM_TIMER

    @property
    def acts(self) -> bool:
        """Whether the site lets it change anything."""
        settings = self.context.site.settings.fabric.switch_software
        return settings is not None and settings.act

    def preview(self, request: UpgradeRequest) -> Preview:
        """Return which switches would get the software. What is in use decides later, wave by wave."""
        with closing(self.context.adapters(Access.READ)) as adapters:
            chosen = self.chosen(request, self.fabric(adapters, Deadline.after(LOOK_S, timer=self.timer)))
        goes_on = [
            Effect(node=one.before.label, text=f"finish what a run that was killed began: software {one.to}")
            for one in chosen.open
        ]
        effects = [
            Effect(node=one.name, text=f"software {one.software} to {request.to} (serial {one.serial})")
            for one in chosen.wanted.values()
        ]
        question = f"Update {len(effects)} switches to {request.to}, in waves? Each restarts."
        return Preview(operation=NAME, question=question, effects=(*goes_on, *effects), skipped=chosen.skipped).of(
            request
        )

    def waves(self, request: UpgradeRequest) -> tuple[tuple[tuple[str, ...], ...], Mapping[str, str]]:
        """Return the waves as they would be now, by name, and why other switches must stay in service now."""
        with closing(self.context.adapters(Access.READ)) as adapters:
            deadline = Deadline.after(LOOK_S, timer=self.timer)
            seen = self.fabric(adapters, deadline)
            wanted = self.chosen(request, seen).wanted
            found = plan_waves(seen, wanted, self.rules(adapters, seen, request.at_once, deadline))
        names = {guid: one.name for guid, one in wanted.items()}
        waves = tuple(tuple(names[guid] for guid in wave) for wave in found.waves)
        name_of = self.labels(seen).device
        return waves, {names[guid]: one.text(name_of) for guid, one in found.refusals.items()}

    def run(self, request: UpgradeRequest, control: Control) -> Result:
        """Finish what a killed run began, then update wave by wave. Raise `UsageError` where the site orders no act."""
        if not self.acts:
            where, remedy = self.context.site.where("fabric", "switch_software"), "write act: true there"
            raise UsageError("the site does not let clusterctl update switches", where=where, remedy=remedy)
        journal = self.context.journal
        with (
            closing(self.context.adapters()) as adapters,
            sole_claim(journal, CLAIM, self.context.run, control.cancelled.set) as claim,
        ):
            control.require(self.preview(request))
            return _Run(self, request, control, adapters, claim).run()

    def fabric(self, adapters: Adapters, deadline: Deadline) -> Fabric:
        """Return the fabric as it is now."""
        return parse_ibnetdiscover(adapters.fabric.ibnetdiscover(deadline).value, file="ibnetdiscover")

    def labels(self, seen: Fabric) -> FabricLabels:
        """Return the names of devices and ports."""
        return fabric_labels(seen, wiring_plan(self.context.site))

    def upgrades(self) -> tuple[SwitchUpgrade, ...]:
        """Return the last upgrade of each switch."""
        journal = self.context.journal
        events = (*journal.latest(Stream.FABRIC, Kind.ACT_INTENDED), *journal.latest(Stream.FABRIC, Kind.ACT_OBSERVED))
        return tuple(switch_upgrades(sorted(events, key=lambda event: event.seq)).values())

    def chosen(self, request: UpgradeRequest, seen: Fabric) -> ChosenSwitches:
        """Return the switches. Raise `UsageError` for unknown names, and where they are of several models."""
        labels = self.labels(seen)
        read = self.services.systems.systems(Deadline.after(LOOK_S, timer=self.timer)).value
        systems = {one.guid: one for one in read}
        open_ = tuple(one for one in self.upgrades() if one.open)
        begun = {one.guid for one in open_}
        found = [guid for guid, one in seen.devices.items() if one.kind is DeviceKind.SWITCH]
        names = {guid: labels.device(guid) for guid in sorted(found, key=lambda guid: natural_key(labels.device(guid)))}
        chosen = matching([*names.values(), *(one.before.label for one in open_)], request.switches, "SWITCH")
        skipped: dict[str, str] = {}
        wanted: dict[Guid, ChosenSwitch] = {}
        for guid, name in names.items():
            if name not in chosen or guid in begun:
                continue
            system = systems.get(guid)
            if reason := _hindrance(system):
                skipped[name] = reason
            elif system is not None and system.software != request.to:
                wanted[guid] = ChosenSwitch(guid=guid, name=name, serial=system.serial, software=system.software)
        models = sorted({systems[guid].model for guid in wanted})
        if len(models) > 1:
            remedy = "name switches of one model: an image belongs to one"
            raise UsageError(
                f"these switches are of {len(models)} models: {', '.join(models)}", where=NAME, remedy=remedy
            )
        return ChosenSwitches(open_, wanted, skipped)

    def rules(
        self, adapters: Adapters, seen: Fabric, at_once: int, deadline: Deadline, *, canary: bool = True
    ) -> WaveRules:
        """Return what a wave must leave alone now."""
        return WaveRules(
            hosts=hosts_behind(self.context, seen, self.labels(seen)),
            busy=busy_hosts(self.context, adapters, deadline),
            masters=masters_seen(self.context, seen),
            at_once=at_once,
            absent=tuple((one.port.guid, one.peer.guid) for one in ports_out(self.context.journal)),
            canary=canary,
        )


@dataclass(slots=True)
class _Run:
    """One run. `left`: switches that have no wave yet; `failed`, `ended`: numbers of switches."""

    software: SwitchSoftware
    request: UpgradeRequest
    control: Control
    adapters: Adapters
    claim: Claim
    left: dict[Guid, ChosenSwitch] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    waves: int = 0

    def run(self) -> Result:
        chosen = self.software.chosen(self.request, self._seen())
        self.left, self.skipped = dict(chosen.wanted), dict(chosen.skipped)
        stopped = self._finish(chosen.open)
        self._give_back_left()
        while self.left and not stopped and not self.control.cancelled.is_set():
            stopped = self._wave()
        return Result(
            operation=NAME,
            outcomes=tuple(self.outcomes),
            skipped=self.skipped,
            stopped=stopped,
            cancelled=self.control.cancelled.is_set(),
        )

    def _finish(self, open_: Sequence[SwitchUpgrade]) -> str:
        """Follow what a killed run began to its end."""
        if not open_:
            return ""
        self._followed(open_)
        return self._stop()

    def _wave(self) -> str:
        """Update one wave. Return why no further one begins."""
        size = self._size()
        seen = self._seen()
        rules = self.software.rules(self.adapters, seen, size, self._deadline(LOOK_S), canary=not self.waves)
        found = plan_waves(seen, self.left, rules)
        self._skip(found, self.software.labels(seen).device)
        if not found.waves:
            return ""
        wave = found.waves[0]
        behind = adapters_behind(seen)
        hosts = {guid: {one: rules.hosts[one] for one in behind.get(guid, ())} for guid in wave}
        with self._kept_free({guid: sorted(set(names.values())) for guid, names in hosts.items()}) as free:
            ordered = (self._order(self.left.pop(guid), seen, hosts[guid]) for guid in free)
            begun = [one for one in ordered if one is not None]
            if begun:
                self.waves += 1
                self._followed(begun)
        return self._stop()

    def _order(self, one: ChosenSwitch, seen: Fabric, hosts: Mapping[Guid, str]) -> SwitchUpgrade | None:
        self._report(one.name, f"wave {self.waves}: software {one.software} to {self.request.to}")
        lease = Lease(self.software.context.journal, {CLAIM: self.claim})
        deadline = self._deadline(LOOK_S).fenced(lease.fence([CLAIM]))
        try:
            return self._upgrader().order(one, self.request.to, seen, hosts, deadline)
        except EdgeError as error:
            self._ended(one.name, Failure.of(error))
            return None

    def _followed(self, upgrades: Sequence[SwitchUpgrade]) -> None:
        """Follow switches to their end: back with all links, and these without errors for a while."""
        upgrader = self._upgrader()
        causes = upgrader.follow(upgrades, self._deadline(self.request.back_s))
        back = [one for one in upgrades if not causes[one.guid]]
        if back:
            causes |= upgrader.prove(back, self._deadline(self.request.settle_s + 2 * LOOK_S))
        for one in upgrades:
            cause = causes[one.guid]
            upgrader.end(one, cause)
            text = f"runs {one.to}; its {len(one.before.links)} links had no errors in {self.request.settle_s:g} s"
            remedy = "see UFM's job and the switch's log; clusterctl cable health"
            failure = Failure(kind="unhealthy", message=cause, remedy=remedy) if cause else None
            self._ended(one.before.label, failure, text)

    def _ended(self, name: str, failure: Failure | None, text: str = "") -> None:
        outcome = Outcome(node=name, text="" if failure else text, failure=failure)
        self.control.on_event(Event(node=name, text=outcome.text, failure=failure))
        self.outcomes.append(outcome)

    def _stop(self) -> str:
        """Return why no further wave begins: too many switches failed."""
        failed = sum(1 for one in self.outcomes if one.failure)
        if not failed or (self.waves > 1 and 100 * failed <= self.request.stop_percent * len(self.outcomes)):
            return ""
        return f"{failed} of {len(self.outcomes)} switches failed: {len(self.left)} others keep their software"

    def _skip(self, found: SwitchWaves, name_of: Callable[[Guid], str]) -> None:
        for guid, refusal in found.refusals.items():
            self.skipped[self.left.pop(guid).name] = refusal.text(name_of)

    def _size(self) -> int:
        """Return how many switches may restart at once; wait a while where the subnet manager is busy."""
        most, pace = self.request.at_once, self.software.services.pace
        if pace is None:
            return most
        deadline, reported = self._deadline(QUIET_S), False
        while (now := pace(_FINER * most)) < _FINER * most and deadline.remaining > QUIET_EVERY_S:
            if not reported:
                self._report("", "the next wave waits until the subnet manager is idle")
                reported = True
            deadline.sleep(QUIET_EVERY_S, "waiting until the subnet manager is idle")
        return max(1, now // _FINER)

    # --- hosts behind leaves ----------------------------------------------------------------------------------------

    @contextmanager
    def _kept_free(self, hosts: Mapping[Guid, Sequence[str]]) -> Iterator[tuple[Guid, ...]]:
        """Keep jobs and other runs off the hosts behind switches; yield the switches whose hosts are all free.

        Afterwards hosts have jobs again, but for those behind a switch that did not come back.
        """
        names = sorted({name for names in hosts.values() for name in names})
        with self._claimed(names) as held:
            taken, more = self._taken([name for name in names if name not in held])
            refused = {**held, **more}
            free = []
            for guid, behind in hosts.items():
                first = next((name for name in behind if name in refused), None)
                if first is None:
                    free.append(guid)
                else:
                    self.skipped[self.left.pop(guid).name] = f"{first} is behind it: {refused[first]}"
            try:
                yield tuple(free)
            finally:
                self._give_back(taken)

    @contextmanager
    def _claimed(self, names: Sequence[str]) -> Iterator[Mapping[str, str]]:
        """Claim the nodes for the time; yield why some cannot be had."""
        context = self.software.context
        ids = {state.id: state.name for state in context.states(names)} if names else {}
        claims = context.journal.claim(ids, context.run)
        try:
            with kept(context.journal, claims.granted, self.control.cancelled.set):
                yield {ids[node]: holder for node, holder in claims.refused.items()}
        finally:
            context.journal.release(claims.granted.values())

    def _lender(self) -> PartnerLender | None:
        scheduler = self.adapters.scheduler
        return PartnerLender(self.software.context, scheduler, PURPOSE) if scheduler is not None else None

    def _taken(self, names: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
        """Keep jobs off the hosts that the scheduler has; return those, and why others cannot be had."""
        lender = self._lender()
        if lender is None or not names:
            return [], {}
        known = lender.occupancy()
        ours = [name for name in names if _is_ours(known.get(name))]
        taken, refused = lender.take([name for name in names if name in known and known[name].use is Use.IDLE])
        busy = [name for name in names if name in known and known[name].use in (Use.BUSY, Use.UNKNOWN)]
        return [*taken, *ours], {**dict.fromkeys(busy, "it has work by now"), **refused}

    def _give_back_left(self) -> None:
        """Give hosts back that a killed run kept free, but for those behind a switch that is not back."""
        lender = self._lender()
        if lender is not None:
            self._give_back([name for name, use in lender.occupancy().items() if _is_ours(use)])

    def _give_back(self, names: Collection[str]) -> None:
        lender = self._lender()
        if lender is None or not names:
            return
        try:
            lacking = self._lacking()
            stuck = {name: lacking[name] for name in names if name in lacking}
            stuck |= lender.give_back([name for name in names if name not in lacking])
        except ClusterctlError as error:
            stuck = dict.fromkeys(names, error.message)
        for name, why in stuck.items():
            self.skipped[name] = f"it is still without jobs: {why}"

    def _lacking(self) -> Mapping[str, str]:
        """Return the hosts that lack links to a switch that was updated, with the reason."""
        seen = self.software.fabric(self.adapters, Deadline.after(LOOK_S, timer=self.software.timer))
        found: dict[str, str] = {}
        for one in self.software.upgrades():
            for name in one.missing(seen) if one.open or one.failed else ():
                for host in (one.before.hosts.get(end.partition("/")[0], "") for end in name.split("-")):
                    found |= {host: f"{one.before.label} is not back"} if host else {}
        return found

    def _seen(self) -> Fabric:
        return self.software.fabric(self.adapters, self._deadline(LOOK_S))

    def _upgrader(self) -> SwitchUpgrader:
        context, services = self.software.context, self.software.services
        limits, plan = limits_for(context.site), wiring_plan(context.site)
        telemetry = self.adapters.telemetry
        collector = LinkCollector(context.journal, self.adapters.fabric, self.adapters.counters, limits, plan, DAY)
        return SwitchUpgrader(
            UpgradeServices(
                fabric=self.adapters.fabric,
                read_links=lambda deadline: collector.read(deadline, telemetry),
                systems=services.systems,
                jobs=services.jobs,
                updater=services.updater,
                image=services.image,
                journal=context.journal,
                claim=self.claim,
                limits=limits,
                plan=plan,
            ),
            self.request.reason,
            self.request.settle_s,
            self._report,
        )

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline.after(seconds, self.control.cancelled, self.software.timer)

    def _report(self, name: str, text: str) -> None:
        self.control.on_event(Event(node=name, text=text))


def _is_ours(use: Occupancy | None) -> bool:
    """Return whether an upgrade that was killed keeps jobs off the node."""
    return use is not None and use.use is Use.OUT and use.reason.startswith(f"{PREFIX}{PURPOSE}:")


def _hindrance(system: ManagedSystem | None) -> str:
    """Return why UFM cannot update a switch; empty where it can."""
    if system is None:
        return "UFM does not have it"
    if UPGRADE not in system.capabilities:
        return "UFM cannot update it: it has no operating system that UFM may log in to"
    if not system.serial or not system.software:
        return "UFM does not have its serial and its software"
    return ""
