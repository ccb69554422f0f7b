"""BMCs over Redfish: meets `Bmcs` and `BmcClient` of the ports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from clusterctl.edges.redfish.power import PowerSwitch, power_of
from clusterctl.edges.redfish.session import Pace, Session
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.formats.redfish.evidence import origin, render
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.logs import read_logs
from clusterctl.formats.redfish.tree import ROOT, Answers
from clusterctl.ports import BmcAddress, BmcClient, Clock, Deadline, LogEntry, Power


class RedfishBmcs:
    """Opens BMC sessions. `pace` is for tests, which have no time to wait."""

    def __init__(self, clock: Clock, pace: Pace | None = None) -> None:
        self._clock = clock
        self._pace = pace or Pace()

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient:
        """A client that logs in when its `with` block begins, within `deadline`."""
        return _RedfishClient(address, deadline, self._clock, self._pace)


class _RedfishClient:
    def __init__(self, address: BmcAddress, deadline: Deadline, clock: Clock, pace: Pace) -> None:
        self._host = address.host if address.port == 443 else f"{address.host}:{address.port}"
        self._deadline = deadline
        self._clock = clock
        self._pace = pace
        self._address = address
        self._session: Session

    def __enter__(self) -> Self:
        with self._located():
            self._session = Session(self._address, self._deadline, self._pace)
            try:
                self._session.open(self._deadline)
            except BaseException:
                self._session.close()
                raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._session.close()

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        with self._located():
            reading, answers = self._session.walk(read_inventory, deadline)
        return Observed(reading.inventory, (self._evidence("redfish walk", answers, reading.problems),))

    def power(self, deadline: Deadline) -> Observed[Power]:
        with self._located():
            switch = PowerSwitch(self._session, self._pace)
            found = power_of(switch.look(deadline))
        return Observed(found, (self._evidence("redfish power", switch.answers, switch.steps),))

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Bring the machine to `power` and read it back; refuses unless its serial is `serial`."""
        with self._located():
            switch = PowerSwitch(self._session, self._pace)
            switch.switch(power, serial, deadline)
        return Observed(power, (self._steps(f"redfish set power {power.value}", switch),))

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        """The newest entries of all hardware logs, newest first."""
        with self._located():
            entries, answers = self._session.walk(read_logs, deadline)
        found = tuple(LogEntry(entry.at, entry.severity, entry.message) for entry in entries)
        return Observed(found, (self._evidence("redfish event log", answers),))

    def _evidence(self, source: str, answers: Answers, problems: Sequence[str] = ()) -> Evidence:
        return Evidence(source, self._host, self._clock.now(), origin(answers), render(answers, problems))

    def _steps(self, source: str, switch: PowerSwitch) -> Evidence:
        content = json.dumps({"steps": switch.steps}).encode()
        return Evidence(source, self._host, self._clock.now(), origin({ROOT: self._session.root}), content)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Errors from inside name this BMC."""
        try:
            yield
        except ClusterctlError as error:
            if not error.where.startswith(self._host):
                error.where = f"{self._host}{error.where}" if error.where.startswith("/") else error.where or self._host
            raise
