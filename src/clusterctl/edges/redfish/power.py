"""Switching a machine on and off, and seeing that it happened."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from clusterctl.edges.redfish.connection import refusal
from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.write import Change, NotDoneError, NotSeenError, RefusedError, Sight, Writer
from clusterctl.fleet.errors import AuthenticationError, EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.stagger import Stagger
from clusterctl.formats.redfish.power import AcCycle, PowerControl, read_ac_cycle, read_power
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline, Power

_SLICE_SECONDS = 0.25
_DOING = "waiting until the machine may be switched on: others of its rack or PDU are coming on"


@dataclass(slots=True)
class _Group:
    going: int = 0
    ended: list[float] = field(default_factory=list)


class PowerOnStagger:
    """`group_of` names the group of a BMC by its host. Thread-safe; one for a whole run."""

    def __init__(self, stagger: Stagger, group_of: Callable[[str], str]) -> None:
        self._stagger = stagger
        self._group_of = group_of
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._lock = threading.Lock()

    def turn(self, host: str) -> Callable[[Deadline], AbstractContextManager[None]]:
        """For `PowerSwitch`: a context that begins when it is this machine's turn, and ends when it was seen on."""
        return lambda deadline: self._held(self._group_of(host), deadline)

    @contextmanager
    def _held(self, name: str, deadline: Deadline) -> Iterator[None]:
        while (wait := self._take(name)) > 0:
            deadline.sleep(wait, _DOING)
        try:
            yield
        finally:
            with self._lock:
                group = self._groups[name]
                group.going -= 1
                group.ended.append(time.monotonic())

    def _take(self, name: str) -> float:
        """0 where it is its turn, which is taken; else the seconds after which to ask again."""
        with self._lock:
            group, now = self._groups[name], time.monotonic()
            group.ended = [at for at in group.ended if now < at + self._stagger.seconds]
            wait = self._stagger.wait(group.going, group.ended, now)
            if wait is not None and wait <= 0:
                group.going += 1
                return 0.0
            return _SLICE_SECONDS if wait is None else wait


_STATES = {"On": Power.ON, "Off": Power.OFF}
_BUTTON = "PushPowerButton"
_ON = ("On", "ForceOn", _BUTTON)
_FORCED_OFF = ("ForceOff", _BUTTON)
_GRACEFUL_OFF = ("GracefulShutdown",)

Turn = Callable[[Deadline], AbstractContextManager[object]]
"""Waits until one more machine may draw its inrush current, and counts it until it has."""


def at_once(_deadline: Deadline) -> AbstractContextManager[object]:
    """No machine waits for another."""
    return nullcontext()


class PowerSwitch:
    """Power of one machine through one session. `steps` records what was asked and seen, for the evidence."""

    def __init__(self, session: Session, timing: Timing, turn: Turn = at_once) -> None:
        self._session = session
        self._timing = timing
        self._turn = turn
        self._control: PowerControl | None = None
        self.steps: list[str] = []
        self.answers: Answers = {}

    def look(self, deadline: Deadline) -> PowerControl:
        control, self.answers = self._session.walk(read_power, deadline)
        self._control = control
        return control

    def switch(self, power: Power, serial: Serial, deadline: Deadline) -> None:
        """Bring the machine to `power`; raises unless it is machine `serial` and the state was seen."""
        if power is Power.UNKNOWN:
            raise UsageError("a machine can be switched on or off only")
        writer = Writer(self._session, self._timing, serial)
        self.steps = writer.steps
        found = writer.look(lambda within: self._sight(power, within), deadline)
        if found.seen:
            return
        if power is Power.ON:
            with self._turn(deadline):
                writer.make(self._change(_ON, power), deadline, found)
        elif not self._shut_down(writer, found, deadline):
            writer.make(self._change(_FORCED_OFF, power), deadline)

    def cycle(self, serial: Serial, deadline: Deadline) -> None:
        """Off, some rest without power, and on again: each half is seen, which no single reset would show."""
        self.switch(Power.OFF, serial, deadline)
        steps = self.steps
        deadline.sleep(self._timing.rest, "letting the machine rest without power")
        self.switch(Power.ON, serial, deadline)
        self.steps = [*steps, *self.steps]

    def _shut_down(self, writer: Writer, found: Sight, deadline: Deadline) -> bool:
        """Ask the OS to shut down; False where it cannot, or does not within its grace."""
        if self._kind(_GRACEFUL_OFF) is None:
            return False
        grace = min(self._timing.grace, deadline.remaining / 2)
        try:
            writer.make(self._change(_GRACEFUL_OFF, Power.OFF, grace), deadline, found)
        except (NotDoneError, OutcomeUnknownError) as error:
            writer.steps.append(f"no graceful shutdown: {error.message}")
            return False
        return True

    def _kind(self, kinds: tuple[str, ...]) -> str | None:
        """The first of these resets that the BMC takes."""
        return self._control.first(*kinds) if self._control else None

    def _change(self, kinds: tuple[str, ...], power: Power, grace: float | None = None) -> Change:
        """One reset that leads to `power`; with `grace` seconds it is asked for once and not insisted on."""
        kind = self._kind(kinds)
        if self._control is None or kind is None:
            raise EdgeError(f"the BMC takes none of {', '.join(kinds)}", remedy="switch the machine by hand")
        return Change(
            f"ResetType {kind}",
            "POST",
            self._control.target,
            ({"ResetType": kind},),
            lambda deadline: self._sight(power, deadline),
            seconds=grace,
            patient=grace is None,
            again=kind != _BUTTON,
        )

    def _sight(self, power: Power, deadline: Deadline) -> Sight:
        control = self.look(deadline)
        found = f"PowerState is {control.state or 'not told'}"
        return Sight(control.serial, power_of(control) is power, found)


def power_of(control: PowerControl) -> Power:
    """On and off; everything between, and null, is unknown."""
    return _STATES.get(control.state, Power.UNKNOWN)


class AcCycler:
    """One machine, through one session, which does not survive it: a new one is opened once the BMC is back."""

    def __init__(self, session: Session, timing: Timing, switch: PowerSwitch) -> None:
        self._session = session
        self._timing = timing
        self._switch = switch
        self.steps: list[str] = []

    def cycle(self, serial: Serial, deadline: Deadline) -> None:
        """The OS down, all power off, BMC and machine back on. Raises before anything is done where the BMC cannot."""
        way, _ = self._session.walk(read_ac_cycle, deadline)
        if not way.target:
            remedy = "take the machine's power cables out for a minute, or switch its outlets at the PDU"
            raise EdgeError("the BMC has no action that takes all power from the machine", remedy=remedy)
        self._switch.switch(Power.OFF, serial, deadline)
        self.steps += self._switch.steps
        self._send(way, deadline)
        self._back(serial, deadline)
        self._switch.switch(Power.ON, serial, deadline)
        self.steps += self._switch.steps

    def _send(self, way: AcCycle, deadline: Deadline) -> None:
        """A BMC whose power goes may not answer; that it went is seen afterwards."""
        doing = f"ResetType {way.body['ResetType']}"
        try:
            reply = self._session.write(way.target, way.body, deadline)
        except OutcomeUnknownError as error:
            self.steps.append(f"{doing}: {error.message}")
            return
        self.steps.append(f"{doing}: {refusal(reply)}")
        if reply.status >= 300:
            raise RefusedError(f"the BMC refuses {doing}: {refusal(reply)}")

    def _back(self, serial: Serial, deadline: Deadline) -> None:
        """Until the BMC was away and answers again as the same machine's."""
        logins, away = self._session.logins, False
        limit = deadline.within(self._timing.gone)
        while True:
            try:
                found = self._session.walk(read_power, deadline.within(self._timing.look))[0].serial
            except AuthenticationError:
                raise
            except EdgeError as error:
                away = True
                self.steps.append(f"the BMC is away: {error.message}")
            else:
                away = away or self._session.logins != logins
                if away:
                    self._same(found, serial)
                    return
            if not away and limit.remaining <= self._timing.poll:
                raise NotSeenError(
                    "the BMC accepted to take all power, and has not gone away itself",
                    remedy="take the machine's power cables out for a minute, or switch its outlets at the PDU",
                )
            deadline.sleep(self._timing.poll, "waiting for the BMC to come back with power")

    def _same(self, found: Serial, serial: Serial) -> None:
        if found != serial:
            raise EdgeError(f"the BMC that came back belongs to machine {found}, not to {serial}")
        self.steps.append("the BMC is back")
