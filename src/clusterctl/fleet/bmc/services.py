"""What a site sets on its BMCs: time servers, name servers, and where their logs go."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Service(enum.Enum):
    """One of the things that are set."""

    CLOCK = "clock"
    DNS = "dns"
    SYSLOG = "syslog"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedServices:
    """What is empty is left as it is. IP addresses are in their short form."""

    ntp: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    syslog: str = ""
    syslog_port: int = 514

    @property
    def texts(self) -> Mapping[Service, str]:
        """Return each wanted service as text."""
        syslog = f"{self.syslog} port {self.syslog_port}" if self.syslog else ""
        found = {Service.CLOCK: ", ".join(self.ntp), Service.DNS: ", ".join(self.dns), Service.SYSLOG: syslog}
        return {service: text for service, text in found.items() if text}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """How a BMC stands to one service.

    right  None where the BMC reports nothing that takes it; `found` has the reason then
    """

    service: Service
    wanted: str
    found: str
    right: bool | None

    def __str__(self) -> str:
        return f"{self.service.value}: {self.found}; wanted: {self.wanted}"
