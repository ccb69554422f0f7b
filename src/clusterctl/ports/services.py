"""BMCs' own services: the clock, name servers, and where their logs go."""

from __future__ import annotations

from typing import Protocol, Self

from clusterctl.fleet.bmc.services import ServiceState, WantedServices
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Serial
from clusterctl.ports.bmc import BmcAddress
from clusterctl.ports.deadline import Deadline


class ServiceClient(Protocol):
    """One BMC, one session, closed on exit."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

    def services(
        self, wanted: WantedServices, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[ServiceState, ...]]:
        """Return how the BMC stands to what is wanted. Raise `EdgeError` where it is in another machine."""
        ...

    def set_services(
        self, wanted: WantedServices, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[ServiceState, ...]]:
        """Set what differs, and read it back; refuse a BMC that is in another machine. Return how it stands then."""
        ...


class ServiceBmcs(Protocol):
    """Opens BMC sessions for their services."""

    def open_services(self, address: BmcAddress, deadline: Deadline) -> ServiceClient: ...
