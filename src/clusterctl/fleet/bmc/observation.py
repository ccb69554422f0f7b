"""BMCs as a sweep of the network finds them, and what other sources report of their places."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusterctl.fleet.node import Mac, Serial


class SweepOutcome(enum.Enum):
    """How far a sweep came with one address that answers. `IDENTIFIED` (a machine) and `OTHER_DEVICE` are all fine."""

    IDENTIFIED = "identified"
    OTHER_DEVICE = "other_device"
    NO_LOGIN = "no_login"
    REJECTED = "rejected"
    CERTIFICATE_UNKNOWN = "certificate_unknown"
    NO_REDFISH = "no_redfish"
    NO_ANSWER = "no_answer"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a BMC reports without a login (its service root); empty where it does not.

    `serial` is the machine's, `bmc_mac` the BMC's own: few vendors report them without a login. `kind`: as of
    `Identity`.
    """

    vendor: str = ""
    product: str = ""
    redfish_version: str = ""
    uuid: str = ""
    serial: str = ""
    bmc_mac: Mac | None = None
    simulated: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """The machine that a BMC names as its own; empty or None where it names none. `problems`: what was not understood.

    kind  what it is where it is no machine: DPU, switch, power shelf
    """

    manufacturer: str = ""
    model: str = ""
    serial: Serial | None = None
    sku: str = ""
    uuid: str = ""
    bios: str = ""
    bmc_firmware: str = ""
    bmc_mac: Mac | None = None
    problems: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class BmcObservation:
    """One address that answers on the BMCs' port.

    `fingerprint` is the SHA-256 of its certificate, empty where it proved itself by an authority or over plain HTTP;
    `login` names the site's credentials that were used; `requests` counts HTTP requests, login and logout among them.
    """

    address: str
    outcome: SweepOutcome
    greeting: Greeting = Greeting()
    identity: Identity = Identity()
    fingerprint: str = ""
    login: str = ""
    requests: int = 0
    cause: str = ""
    remedy: str = ""

    @property
    def proven(self) -> bool:
        """Return False where the site cannot verify the peer's identity: then its answers are unverified."""
        return self.outcome is not SweepOutcome.CERTIFICATE_UNKNOWN

    @property
    def serial(self) -> Serial | None:
        """Return the serial of the machine: read after login, else from the service root of a verified BMC."""
        if self.outcome is SweepOutcome.OTHER_DEVICE:
            return None
        greeted = self.greeting.serial if self.proven else ""
        return self.identity.serial or (Serial(greeted) if greeted else None)

    @property
    def bmc_mac(self) -> Mac | None:
        """Return the MAC of the BMC: read after login, else from the service root of a verified BMC."""
        return self.identity.bmc_mac or (self.greeting.bmc_mac if self.proven else None)


@dataclass(frozen=True, slots=True)
class Lease:
    """Which hardware address a DHCP server gave an address to; `hostname` as the client or the server names it."""

    address: str
    mac: Mac
    hostname: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A machine of a MAC sheet or vendor's list: known by serial or BMC MAC, or both; `where` is file and line."""

    where: str
    serial: str = ""
    bmc_mac: Mac | None = None
    name: str = ""
    rack: str = ""
    unit: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A machine of the site's own sheet, list or ranges."""

    where: str
    name: str
    address: str
    serial: str = ""
    rack: str = ""
    unit: int | None = None
