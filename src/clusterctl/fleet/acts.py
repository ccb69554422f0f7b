"""Acts: the side effects that are intended in the journal before they happen, their results, and the fold over both."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar


class Act(enum.StrEnum):
    """What may be done to a machine or a port."""

    POWER_ON = "power.on"
    POWER_OFF = "power.off"
    POWER_CYCLE = "power.cycle"
    POWER_AC_CYCLE = "power.ac_cycle"
    POWER_LOGIN = "power.login"
    MEDIA_BOOT = "media.boot"
    MEDIA_EJECT = "media.eject"
    SCHEDULER_REBOOT = "scheduler.reboot"
    LOG_CLEAR = "log.clear"
    BMC_SERVICES = "bmc.services"
    BMC_CERTIFICATE = "bmc.certificate"
    PASSWORD_CHANGE = "password.change"  # noqa: S105 — no password
    PASSWORD_SHARE = "password.share"  # noqa: S105 — likewise
    INVENTORY_BOOT = "discover.boot"
    INSTALL_PREPARE = "install.prepare"
    INSTALL_START = "install.start"
    INSTALL_RELEASE = "install.release"
    CONFIGURE_PLAY = "configure.play"
    CONFIGURE_REBOOT = "configure.reboot"
    SETTINGS_FIRMWARE = "settings.firmware"
    SETTINGS_BIOS = "settings.bios"
    SETTINGS_REBOOT = "settings.reboot"
    NIC_FIRMWARE_PLAY = "nic_firmware.play"
    PLACE_WRITE = "place.write"
    RETIRE_ERASE = "retire.erase"
    RETIRE_POWER_OFF = "retire.power_off"
    PORT_DISABLE = "port.disable"
    PORT_ENABLE = "port.enable"
    UFM_RESTART = "ufm.restart"
    SWITCH_UPGRADE = "switch.upgrade"


INSTALL_ACTS = frozenset({Act.POWER_LOGIN, Act.INSTALL_PREPARE, Act.INSTALL_START, Act.INSTALL_RELEASE})
SETTINGS_ACTS = frozenset({Act.SETTINGS_FIRMWARE, Act.SETTINGS_BIOS, Act.SETTINGS_REBOOT})


class ActResult(enum.StrEnum):
    """What came of an act. UNKNOWN: it may have happened. BEGUN: it goes on, and a later event has its end."""

    DONE = "done"
    BEGUN = "begun"
    FAILED = "failed"
    UNKNOWN = "unknown"


class FlashState(enum.StrEnum):
    """How far a flash came: SENDING, FOLLOWING its task, OVER: the BMC has it; FAILED."""

    SENDING = "sending"
    FOLLOWING = "following"
    OVER = "over"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What an intent records in addition to its target. One subclass for each act that needs any."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDetails(Details):
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordDetails(Details):
    """`number` counts the node's passwords. `proof`: what proves that it is the node's machine."""

    number: int
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDetails(Details):
    """SHA-256 of DER: the certificate before, the BMC's request, and the certificate that was issued for it."""

    before: str
    request: str = ""
    issued: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootDetails(Details):
    """`boot_id`: the boot that is to end."""

    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRebootDetails(Details):
    """`booted`: the last boot before, as the scheduler has it, ISO 8601; `drain`: why it has no work meanwhile."""

    booted: str
    drain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashDetails(Details):
    """`before`: the BMC's tasks just before the image was sent. `tasks`: those that it became."""

    component: str
    version: str
    sha256: str
    state: FlashState
    before: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosDetails(Details):
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerDetails(Details):
    """`was_on`: whether the machine was on before a reboot: one that was off ends off."""

    was_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PortDetails(Details):
    """What a disabled port is, for its repair.

    label   the port's name
    gbps    the rate of its link until then, in Gb/s; 0 where it is not known
    peer    the name of the port at the other end
    rack    where the work begins
    serial  of the cable or its ends, where known
    repair  what is to be done
    peer_rack  the rack of the other end
    """

    label: str
    gbps: float
    peer: str = ""
    rack: str = ""
    serial: str = ""
    repair: str = ""
    peer_rack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceDetails(Details):
    """What a node was called and where it was before the site's files change, for a run that goes on after a kill.

    readdressed  the change gives its host another address
    """

    name: str
    bmc: str
    rack: str
    unit: int | None
    readdressed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchUpgradeDetails(Details):
    """What a switch was before new software, for a run that goes on after a kill.

    label     its name
    serial    as the fabric manager has it
    software  the version that it ran
    state     SENDING until the fabric manager has taken the order, then FOLLOWING
    last_job  the highest number of a job of the manager before the order
    job       the number of its own
    rebooted  the reboot after it was ordered
    links     Gb/s of each of its links that were up, by `GUID/port-GUID/port`
    hosts     names of the hosts behind it, by the GUIDs of their adapters
    """

    label: str
    serial: str
    software: str
    state: FlashState
    last_job: int
    job: str = ""
    rebooted: bool = False
    links: Mapping[str, float] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)


AnyDetails = (
    ImageDetails
    | PasswordDetails
    | RebootDetails
    | SchedulerRebootDetails
    | FlashDetails
    | BiosDetails
    | PowerDetails
    | PortDetails
    | PlaceDetails
    | SwitchUpgradeDetails
    | CertificateDetails
)
DETAILS: Mapping[Act, type[Details]] = {
    Act.MEDIA_BOOT: ImageDetails,
    Act.MEDIA_EJECT: ImageDetails,
    Act.SCHEDULER_REBOOT: SchedulerRebootDetails,
    Act.BMC_CERTIFICATE: CertificateDetails,
    Act.PASSWORD_CHANGE: PasswordDetails,
    Act.CONFIGURE_REBOOT: RebootDetails,
    Act.SETTINGS_FIRMWARE: FlashDetails,
    Act.SETTINGS_BIOS: BiosDetails,
    Act.SETTINGS_REBOOT: PowerDetails,
    Act.PLACE_WRITE: PlaceDetails,
    Act.PORT_DISABLE: PortDetails,
    Act.PORT_ENABLE: PortDetails,
    Act.SWITCH_UPGRADE: SwitchUpgradeDetails,
}
"""The details of each act; an act that is not here has none."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The last intent of an act, and its result. Firmware has one for each component.

    seq       the event that intended it
    result    None where none is recorded: look at the machine before acting again
    observed  the event of the last result; 0 where there was none
    done      the last event with which the act, intended then or before, was DONE; 0 where it never was
    """

    act: Act
    target: str
    seq: int
    details: AnyDetails | None = None
    result: ActResult | None = None
    observed: int = 0
    done: int = 0

    @property
    def open(self) -> bool:
        return self.result is None

    @property
    def component(self) -> str:
        return self.details.component if isinstance(self.details, FlashDetails) else ""


Intents = tuple[Intent, ...]
"""The last intent of each act, in the order in which they were intended."""


def intent_of(intents: Intents, act: Act, component: str = "") -> Intent | None:
    """Return the last intent of an act; None where it was never intended."""
    return next((intent for intent in intents if (intent.act, intent.component) == (act, component)), None)


def with_intent(intents: Intents, new: Intent) -> Intents:
    """Return the intents after one more. The start of an install makes the last reboot void: its OS is replaced."""
    earlier = intent_of(intents, new.act, new.component)
    others = tuple(intent for intent in intents if intent is not earlier)
    if new.act is Act.INSTALL_START:
        others = voided(others, Act.CONFIGURE_REBOOT)
    return (*others, replace(new, done=earlier.done if earlier else 0))


def with_result(intents: Intents, act: Act, result: ActResult, seq: int, component: str = "") -> Intents:
    """Return the intents after a result. One without an intent, of an act that was seen to go on, is kept too."""
    intent = intent_of(intents, act, component)
    if intent is None:
        return (
            *intents,
            Intent(act, "", seq, result=result, observed=seq, done=seq if result is ActResult.DONE else 0),
        )
    done = seq if result is ActResult.DONE else intent.done
    found = replace(intent, result=result, observed=seq, done=done)
    return tuple(found if one is intent else one for one in intents)


def voided(intents: Intents, act: Act) -> Intents:
    """Return the intents where an open one of `act` no longer counts as open: nothing will follow it."""
    return tuple(replace(one, result=ActResult.UNKNOWN) if one.act is act and one.open else one for one in intents)
