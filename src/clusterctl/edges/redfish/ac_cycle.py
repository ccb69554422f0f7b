"""All power off a machine and its BMC, seen by the BMC's own going away and coming back."""

from __future__ import annotations

from clusterctl.edges.redfish.answers import refusal
from clusterctl.edges.redfish.attempt import NotSeenError, RefusedError
from clusterctl.edges.redfish.power import PowerSwitch
from clusterctl.edges.redfish.session import Pace, Session
from clusterctl.fleet.errors import AuthenticationError, EdgeError, OutcomeUnknownError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.power import AcCycle, read_ac_cycle, read_power
from clusterctl.ports import Deadline, Power


class AcCycler:
    """One machine, through one session, which does not survive it: a new one is opened once the BMC is back."""

    def __init__(self, session: Session, pace: Pace, switch: PowerSwitch) -> None:
        self._session = session
        self._pace = pace
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
        limit = deadline.within(self._pace.gone)
        while True:
            try:
                found = self._session.walk(read_power, deadline.within(self._pace.look))[0].serial
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
            if not away and limit.remaining <= self._pace.poll:
                raise NotSeenError(
                    "the BMC accepted to take all power, and has not gone away itself",
                    remedy="take the machine's power cables out for a minute, or switch its outlets at the PDU",
                )
            deadline.sleep(self._pace.poll, "waiting for the BMC to come back with power")

    def _same(self, found: Serial, serial: Serial) -> None:
        if found != serial:
            raise EdgeError(f"the BMC that came back belongs to machine {found}, not to {serial}")
        self.steps.append("the BMC is back")
