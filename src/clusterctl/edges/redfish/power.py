"""Switches a machine on and off, one at a time in its group where the site wants that, and verifies the result.

An AC cycle takes all power off the machine and its BMC: the BMC goes away and comes back.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import (
    NotAppliedError,
    NotDoneError,
    RedfishChange,
    RefusedError,
    Writer,
    WriteReading,
)
from clusterctl.fleet.errors import AuthenticationError, EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.stagger import Stagger
from clusterctl.formats.redfish.power import AcCycle, PowerControl, read_ac_cycle, read_power
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline, Power

_SLICE_SECONDS = 0.25
_WAITING = "waiting until the machine may be switched on: others of its rack or PDU are coming on"
_STATES = {"On": Power.ON, "Off": Power.OFF}
_BUTTON = "PushPowerButton"
_ON = ("On", "ForceOn", _BUTTON)
_FORCED_OFF = ("ForceOff", _BUTTON)
_GRACEFUL_OFF = ("GracefulShutdown",)
_BY_HAND = "unplug the machine's power cables for a minute, or switch its outlets at the PDU"

Permit = Callable[[Deadline], AbstractContextManager[object]]
"""Waits until one more machine may draw its inrush current, and counts the machine until it is on."""


def at_once(_deadline: Deadline) -> AbstractContextManager[object]:
    """Permit every machine at once."""
    return nullcontext()


SharedPermit = Callable[[str, Deadline], AbstractContextManager[object]]
"""The permit of one more machine of a group, over all runs; it waits as `Permit`."""


def of_this_run(_group: str, _deadline: Deadline) -> AbstractContextManager[object]:
    """Permit what this run permits."""
    return nullcontext()


@dataclass(slots=True)
class _Group:
    under_way: int = 0
    ended: list[float] = field(default_factory=list)


class PowerOnStagger:
    """Staggers the power-on of the machines of one group (a rack, a feed), across all their callers.

    `group_of` maps a BMC's host to its group; `shared` holds the same limit over all runs. Thread-safe; one for a whole
    run.
    """

    def __init__(self, stagger: Stagger, group_of: Callable[[str], str], shared: SharedPermit = of_this_run) -> None:
        self._stagger = stagger
        self._group_of = group_of
        self._shared = shared
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._lock = threading.Lock()

    def permit(self, host: str) -> Permit:
        """Return one machine's permit: a context that begins when it may be switched on, and ends when it is on."""
        return lambda deadline: self._held(self._group_of(host), deadline)

    @contextmanager
    def _held(self, name: str, deadline: Deadline) -> Iterator[None]:
        while (wait := self._take(name)) > 0:
            deadline.sleep(wait, _WAITING)
        try:
            with self._shared(name, deadline):  # ends before this run's own permit: no wait of its own comes on top
                yield
        finally:
            with self._lock:
                group = self._groups[name]
                group.under_way -= 1
                group.ended.append(time.monotonic())

    def _take(self, name: str) -> float:
        """Take the permit and return 0 where it is free, else return the seconds until the next try."""
        with self._lock:
            group, now = self._groups[name], time.monotonic()
            group.ended = [at for at in group.ended if now < at + self._stagger.seconds]
            wait = self._stagger.wait(group.under_way, group.ended, now)
            if wait is not None and wait <= 0:
                group.under_way += 1
                return 0.0
            return _SLICE_SECONDS if wait is None else wait


class PowerSwitch:
    """Power of one machine through one session. `steps` records requests and readings, for the evidence."""

    def __init__(self, session: RedfishSession, timing: Timing, permit: Permit = at_once) -> None:
        self._session = session
        self._timing = timing
        self._permit = permit
        self._control: PowerControl | None = None
        self.steps: list[str] = []
        self.answers: Answers = {}

    def read(self, deadline: Deadline) -> PowerControl:
        """Read the machine's power state and its reset action."""
        control, self.answers = self._session.walk(read_power, deadline)
        self._control = control
        return control

    def switch(self, power: Power, serial: Serial, deadline: Deadline) -> None:
        """Bring the machine to `power`; raises unless it is machine `serial` and the state is verified."""
        if power is Power.UNKNOWN:
            raise UsageError("a machine can be switched on or off only")
        writer = Writer(self._session, self._timing, serial)
        self.steps = writer.steps
        found = writer.read(lambda within: self._reading(power, within), deadline)
        if found.done:
            return
        if power is Power.ON:
            with self._permit(deadline):
                writer.make(self._change(_ON, power), deadline, found)
        elif not self._shut_down(writer, found, deadline):
            writer.make(self._change(_FORCED_OFF, power), deadline)

    def cycle(self, serial: Serial, deadline: Deadline) -> None:
        """Switch off, wait, and switch on again. Each half is verified, which a single reset would not allow."""
        self.switch(Power.OFF, serial, deadline)
        steps = self.steps
        deadline.sleep(self._timing.rest, "waiting while the machine is without power")
        self.switch(Power.ON, serial, deadline)
        self.steps = [*steps, *self.steps]

    def ac_cycle(self, serial: Serial, deadline: Deadline) -> None:
        """Shut the OS down, take all power off, and wait until BMC and machine are back on.

        The session does not survive it. Raises before anything is changed where the BMC has no such action.
        """
        action, _ = self._session.walk(read_ac_cycle, deadline)
        if not action.target:
            raise EdgeError("the BMC has no action that takes all power off the machine", remedy=_BY_HAND)
        self.switch(Power.OFF, serial, deadline)
        steps = self.steps
        self._take_power(action, steps, deadline)
        self._wait_for_return(serial, steps, deadline)
        self.switch(Power.ON, serial, deadline)
        self.steps = [*steps, *self.steps]

    def _shut_down(self, writer: Writer, found: WriteReading, deadline: Deadline) -> bool:
        """Ask the OS to shut down; return False where that is impossible, or takes longer than its grace."""
        if self._reset_type(_GRACEFUL_OFF) is None:
            return False
        grace = min(self._timing.grace, deadline.remaining / 2)
        try:
            writer.make(self._change(_GRACEFUL_OFF, Power.OFF, grace), deadline, found)
        except (NotDoneError, OutcomeUnknownError) as error:
            writer.steps.append(f"no graceful shutdown: {error.message}")
            return False
        return True

    def _reset_type(self, types: tuple[str, ...]) -> str | None:
        """Return the first of these reset types that the BMC accepts."""
        return self._control.first(*types) if self._control else None

    def _change(self, types: tuple[str, ...], power: Power, grace: float | None = None) -> RedfishChange:
        """Return the reset that leads to `power`; with `grace` seconds it is requested once, without insisting."""
        reset_type = self._reset_type(types)
        if self._control is None or reset_type is None:
            raise EdgeError(f"the BMC accepts none of {', '.join(types)}", remedy="switch the machine by hand")
        return RedfishChange(
            f"ResetType {reset_type}",
            "POST",
            self._control.target,
            ({"ResetType": reset_type},),
            lambda deadline: self._reading(power, deadline),
            seconds=grace,
            patient=grace is None,
            again=reset_type != _BUTTON,
        )

    def _reading(self, power: Power, deadline: Deadline) -> WriteReading:
        control = self.read(deadline)
        found = f"PowerState is {control.state or 'not reported'}"
        return WriteReading(control.serial, power_of(control) is power, found)

    def _take_power(self, action: AcCycle, steps: list[str], deadline: Deadline) -> None:
        """Request the cycle. A BMC that loses its power may not answer; that it went away is verified afterwards."""
        doing = f"ResetType {action.body['ResetType']}"
        try:
            reply = self._session.write(action.target, action.body, deadline)
        except OutcomeUnknownError as error:
            steps.append(f"{doing}: {error.message}")
            return
        steps.append(f"{doing}: {reply.summary}")
        if reply.status >= 300:
            raise RefusedError(f"the BMC refuses {doing}: {reply.summary}")

    def _wait_for_return(self, serial: Serial, steps: list[str], deadline: Deadline) -> None:
        """Wait until the BMC was away and answers again for the same machine."""
        logins, away = self._session.logins, False
        limit = deadline.within(self._timing.switch_off)
        while True:
            found = self._serial_now(steps, deadline.within(self._timing.look))
            away = away or found is None or self._session.logins != logins
            if away and found is not None:
                if found != serial:
                    raise EdgeError(f"the BMC that came back belongs to machine {found}, not to {serial}")
                steps.append("the BMC is back")
                return
            if not away and limit.remaining <= self._timing.poll:
                message = "the BMC accepted to take all power off, and did not go away itself"
                raise NotAppliedError(message, remedy=_BY_HAND)
            deadline.sleep(self._timing.poll, "waiting for the BMC to come back with power")

    def _serial_now(self, steps: list[str], deadline: Deadline) -> Serial | None:
        """Return the serial of the machine; None while the BMC is away. Raises `AuthenticationError`."""
        try:
            return self._session.walk(read_power, deadline)[0].serial
        except AuthenticationError:
            raise
        except EdgeError as error:
            steps.append(f"the BMC is away: {error.message}")
            return None


def power_of(control: PowerControl) -> Power:
    """Return on or off; every other state, and null, is unknown."""
    return _STATES.get(control.state, Power.UNKNOWN)
