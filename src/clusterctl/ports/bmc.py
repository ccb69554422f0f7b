"""BMCs: reading a machine and switching it, over any protocol of its BMC."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Protocol, Self

from clusterctl.fleet.bmc.boot import BootOnce, Post
from clusterctl.fleet.bmc.logs import LogArchive, LogEntry
from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.secret import NeverPickled
from clusterctl.ports.deadline import Deadline
from clusterctl.ports.settings import BmcSettings


class Power(enum.Enum):
    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BmcAddress(NeverPickled):
    """How to reach a BMC. `password` is a secret: never in `repr`, logs, journal or evidence.

    It proves itself by the certificate with the SHA-256 `fingerprint`, else by one that `ca_file` vouches for (empty: a
    kept pin, else the controller's authorities). `plain_http`: no proof, by the site's choice.

    `machine`: the serial that was once read there, by the journal; empty where none was. It selects the pin.
    `former`: user and password that are tried where the others are rejected: a change of the password was begun, and
    it is not yet known whether it took effect. None: they are tried alone.
    """

    host: str
    user: str
    password: str = field(repr=False)
    port: int = 443
    ca_file: str = ""
    fingerprint: str = ""
    plain_http: bool = False
    machine: str = ""
    former: tuple[str, str] | None = field(default=None, repr=False)


class BmcClient(BmcSettings, Protocol):
    """One BMC, one session, closed on exit: `with bmcs.open(address, deadline) as bmc: …`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def inventory(self, deadline: Deadline) -> Observed[Inventory]: ...
    def power(self, deadline: Deadline) -> Observed[Power]: ...
    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Bring the machine to `power` and read it back; refuses unless its serial is `serial`."""
        ...

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Switch off, verify, and switch on again; refuse unless its serial is `serial`."""
        ...

    def ac_cycle(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Take all power off the machine and its BMC, and on again; refuse unless its serial is `serial`."""
        ...

    def boot_once(self, wish: BootOnce, serial: Serial, deadline: Deadline) -> Observed[BootOnce]:
        """Have the next boot be the wished one, and read it back; refuses unless its serial is `serial`."""
        ...

    def enroll_boot_authority(self, pem: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Have the firmware trust this authority (PEM) for a boot over HTTPS, and read it back.

        Refuses unless its serial is `serial`. Raises `EdgeError` where the BMC does not offer it.
        """
        ...

    def insert_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[str]:
        """Put the image into a free virtual drive, and read it back; refuses unless its serial is `serial`."""
        ...

    def eject_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Take the image out of every virtual drive, and read it back; refuses unless its serial is `serial`."""
        ...

    def post(self, deadline: Deadline) -> Observed[Post]:
        """Return the state of the machine's self-test; a machine that is off has not begun it."""
        ...

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]: ...
    def screen(self, deadline: Deadline) -> Observed[Screen | None]:
        """Return what the machine's screen or console shows; None where the BMC does not give it."""
        ...

    def archive_log(self, deadline: Deadline) -> Observed[LogArchive]:
        """Return all entries of the event logs that can be cleared; its evidence is to be kept."""
        ...

    def clear_log(self, archive: LogArchive, deadline: Deadline) -> Observed[None]:
        """Empty those logs, verified; refuse where they hold entries that `archive` lacks, or are another machine's."""
        ...


class Bmcs(Protocol):
    """Opens BMC sessions."""

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient: ...
