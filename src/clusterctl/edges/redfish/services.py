"""A BMC's time servers, name servers and syslog target: reads them, and sets what differs, each read back."""

from __future__ import annotations

from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import NotDoneError, Read, RedfishChange, Writer, WriteReading, require_machine
from clusterctl.fleet.bmc.services import Service, WantedServices
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.services import ServicesControl, ServiceSetting, services_reader
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline


class BmcServices:
    """The services of one BMC through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing) -> None:
        self._session = session
        self._timing = timing
        self.steps: list[str] = []

    def read(self, wanted: WantedServices, deadline: Deadline) -> tuple[ServicesControl, Answers]:
        """Return how the BMC stands, with the answers."""
        return self._session.walk(services_reader(wanted), deadline)

    def set(self, wanted: WantedServices, serial: Serial, deadline: Deadline) -> ServicesControl:
        """Set what differs; refuse a BMC in another machine. A service that is refused keeps none of the others back.

        Raise the first refusal at the end.
        """
        writer = Writer(self._session, self._timing, serial)
        self.steps = writer.steps
        control, _ = self.read(wanted, deadline)
        require_machine(control.serial, serial)
        refused: dict[Service, NotDoneError] = {}
        for setting in control.settings:
            if setting.right or setting.service in refused:
                continue
            try:
                writer.make(self._change(wanted, setting), deadline)
            except NotDoneError as error:
                refused[setting.service] = error
        if refused:
            raise next(iter(refused.values()))
        return self.read(wanted, deadline)[0]

    def _change(self, wanted: WantedServices, setting: ServiceSetting) -> RedfishChange:
        return RedfishChange(
            f"{setting.service.value} {wanted.texts[setting.service]}",
            setting.method,
            setting.path,
            setting.bodies,
            self._reading(wanted, setting),
            seconds=self._timing.settle,
            again=setting.method == "PATCH",
        )

    def _reading(self, wanted: WantedServices, setting: ServiceSetting) -> Read:
        """Return the reader of this setting; one that the BMC does not name any more needs nothing."""

        def read(deadline: Deadline) -> WriteReading:
            control, _ = self.read(wanted, deadline)
            now = next((one for one in control.settings if _key(one) == _key(setting)), None)
            if now is None:
                gone = control.unreported.get(setting.service, "")
                return WriteReading(control.serial, not gone, gone or "nothing is left to be set")
            return WriteReading(control.serial, now.right, now.found, now.etag or self._session.etag(now.path))

        return read


def _key(setting: ServiceSetting) -> tuple[Service, str]:
    return setting.service, setting.path
