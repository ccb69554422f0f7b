"""Switching a machine on and off, and seeing that it happened."""

from __future__ import annotations

from clusterctl.edges.redfish.session import Pace, Session, explanation
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UnreachableError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.reset import PowerControl, read_power
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline, Power

_STATES = {"On": Power.ON, "Off": Power.OFF}
_NOT_YET = ("SYS518", "ActionParameterValueConflict", "UnableToModifyDuringSystemPOST")


class PowerSwitch:
    """Power of one machine through one session. `steps` records what was asked and seen, for the evidence."""

    def __init__(self, session: Session, pace: Pace) -> None:
        self._session = session
        self._pace = pace
        self.steps: list[str] = []
        self.answers: Answers = {}

    def look(self, deadline: Deadline) -> PowerControl:
        control, self.answers = self._session.walk(read_power, deadline)
        self.steps.append(f"PowerState is {control.state or 'not told'}")
        return control

    def switch(self, power: Power, serial: Serial, deadline: Deadline) -> None:
        """Bring the machine to `power`; raises unless it is machine `serial` and the state was seen."""
        if power is Power.UNKNOWN:
            raise UsageError("a machine can be switched on or off only")
        control = self.look(deadline)
        if control.serial != serial:
            raise EdgeError(
                f"this BMC belongs to machine {control.serial}, not to {serial}: power was not touched",
                remedy="find out which address the machine's BMC has now, and correct the site file",
            )
        if _STATES.get(control.state) is power:
            return
        if power is Power.ON:
            self._ask(control, ("On", "ForceOn", "PushPowerButton"), power, deadline)
        elif self._shut_down(control, deadline):
            return
        else:
            self._ask(control, ("ForceOff", "PushPowerButton"), power, deadline)
        if not self._seen(power, deadline, deadline.remaining):
            raise UnreachableError(
                f"the machine's power did not become {power.value} in time",
                remedy="look at the machine's console and its BMC's event log",
            )

    def _shut_down(self, control: PowerControl, deadline: Deadline) -> bool:
        """Ask the OS to shut down; False where it cannot, or does not within its grace."""
        if control.first("GracefulShutdown") is None:
            return False
        if not self._ask(control, ("GracefulShutdown",), Power.OFF, deadline, must=False):
            return False
        return self._seen(Power.OFF, deadline, min(self._pace.grace, deadline.remaining / 2))

    def _ask(
        self, control: PowerControl, kinds: tuple[str, ...], power: Power, deadline: Deadline, *, must: bool = True
    ) -> bool:
        """Send one reset; refused because it is done already counts as done, refused for now is asked again."""
        kind = control.first(*kinds)
        if kind is None:
            raise EdgeError(f"the BMC takes none of {', '.join(kinds)}", remedy="switch the machine by hand")
        for _ in range(self._pace.refusals):
            try:
                reply = self._session.write(control.target, {"ResetType": kind}, deadline)
            except OutcomeUnknownError as error:
                self.steps.append(f"ResetType {kind}: {error.message}")
                return True  # the caller looks at the power state, which settles it
            words = explanation(reply)
            self.steps.append(f"ResetType {kind}: HTTP {reply.status} {words}".strip())
            if reply.status < 300 or _STATES.get(self.look(deadline).state) is power:
                return True
            if not must or not any(sign in words for sign in _NOT_YET):
                break
            deadline.sleep(self._pace.refused, f"waiting until the BMC takes {kind}")
        if must:
            raise EdgeError(f"the BMC refuses {kind}: HTTP {reply.status} {words}".strip())
        return False

    def _seen(self, power: Power, deadline: Deadline, seconds: float) -> bool:
        """Look until the power state is there; False when it was not within `seconds`."""
        limit = deadline.within(seconds)
        while _STATES.get(self.look(deadline).state) is not power:
            if limit.remaining <= self._pace.poll:
                return False
            deadline.sleep(self._pace.poll, f"waiting for power {power.value}")
        return True


def power_of(control: PowerControl) -> Power:
    """On and off; everything between, and null, is unknown."""
    return _STATES.get(control.state, Power.UNKNOWN)
