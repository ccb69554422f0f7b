"""Switching a machine on and off, and seeing that it happened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from clusterctl.edges.redfish.attempt import NotDoneError
from clusterctl.edges.redfish.session import Pace, Session
from clusterctl.edges.redfish.write import Change, Sight, Writer
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.power import PowerControl, read_power
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline, Power

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

    def __init__(self, session: Session, pace: Pace, turn: Turn = at_once) -> None:
        self._session = session
        self._pace = pace
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
        writer = Writer(self._session, self._pace, serial)
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
        deadline.sleep(self._pace.rest, "letting the machine rest without power")
        self.switch(Power.ON, serial, deadline)
        self.steps = [*steps, *self.steps]

    def _shut_down(self, writer: Writer, found: Sight, deadline: Deadline) -> bool:
        """Ask the OS to shut down; False where it cannot, or does not within its grace."""
        if self._kind(_GRACEFUL_OFF) is None:
            return False
        grace = min(self._pace.grace, deadline.remaining / 2)
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
