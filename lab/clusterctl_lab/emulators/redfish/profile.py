"""What a vendor decides: what the tree contains, where its actions are, how it behaves, how its errors read.

A profile fills in `Paths` and `Traits`, renders `tree` from a `View`, and words its errors, most of them by
`messages.py`. The engine does the rest: it finds in `Paths` what can be written to, and leaves out what is empty there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.errors import ClusterctlError
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import LogRecord, View


class Problem(enum.Enum):
    """Why a request is refused; a profile words it and chooses the HTTP status. In brackets: the arguments."""

    UNAUTHORIZED = "unauthorized"
    PASSWORD_CHANGE_REQUIRED = "the password must be changed first"  # (the account's path)  # noqa: S105 — no password
    NOT_FOUND = "not found"  # (path)
    METHOD_NOT_ALLOWED = "method not allowed"
    NOT_ACCEPTABLE = "not acceptable"  # (header)
    PRECONDITION_FAILED = "precondition failed"
    PRECONDITION_REQUIRED = "precondition required"
    MALFORMED_JSON = "malformed JSON"
    MALFORMED_PART = "malformed part"
    PROPERTY_UNKNOWN = "property unknown"  # (property)
    PROPERTY_MISSING = "property missing"  # (property)
    PROPERTY_READ_ONLY = "property is read only"  # (property)
    VALUE_NOT_IN_LIST = "value not in list"  # (value, property)
    VALUE_REFUSED = "value refused"  # (property): what stands for a value that must not be repeated
    ALREADY_ON = "already on"  # (reset type)
    ALREADY_OFF = "already off"  # (reset type)
    POST_BUSY = "the machine is in POST"
    JOB_PENDING = "a job is pending"
    MEDIA_IN_USE = "a medium is inserted already"
    NO_MEDIA = "no medium is inserted"
    TOO_MANY_SESSIONS = "too many sessions"
    UNAVAILABLE = "unavailable"  # (seconds)


class RefusedError(ClusterctlError):
    """A request is refused; `args_` fill the vendor's message."""

    kind = "refused"

    def __init__(self, problem: Problem, *args_: str) -> None:
        super().__init__(f"{problem.value}: {', '.join(args_)}" if args_ else problem.value)
        self.problem = problem
        self.args_ = args_


class Log(enum.Enum):
    """The logs that the engine keeps."""

    SEL = "sel"
    LIFECYCLE = "lifecycle"


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a vendor puts what can be written to. Empty: this vendor has none.

    reset           action ComputerSystem.Reset
    ac_cycle        OEM action that takes all power, the BMC's too; and the ResetType that it needs
    clear_log       actions LogService.ClearLog, and the log that each empties
    boot            what takes a PATCH of the Boot object, where it is not the system: its settings object
    boot_certificates   the authorities for a boot over HTTPS
    manager_reset   action Manager.Reset
    accounts        the collection of accounts
    bios, bios_settings   current attributes, and the object that takes pending ones
    media           devices of virtual media
    multipart_push, simple_update   UpdateService's MultipartHttpPushUri and its action SimpleUpdate
    tasks           the collection of tasks; `jobs`: Dell's, with the same members
    clear_jobs      action DellJobService.DeleteJobQueue
    certificate_service, https_certificates   CertificateService, and the collection of the web server's certificates
    """

    root: str
    sessions: str
    system: str
    reset: str
    ac_cycle: tuple[str, str] = ("", "")
    clear_log: Mapping[str, Log] = field(default_factory=dict)
    boot: str = ""
    boot_certificates: str = ""
    manager_reset: str = ""
    accounts: str = ""
    bios: str = ""
    bios_settings: str = ""
    media: tuple[str, ...] = ()
    multipart_push: str = ""
    simple_update: str = ""
    tasks: str = ""
    jobs: str = ""
    clear_jobs: str = ""
    certificate_service: str = ""
    https_certificates: str = ""

    @property
    def boot_patch(self) -> str:
        return self.boot or self.system


@dataclass(frozen=True, slots=True)
class BiosAttribute:
    """`allowed` empty: any value of the type of `default`; `read_only`: reported, and cannot be set."""

    default: str | int
    allowed: tuple[str | int, ...] = ()
    read_only: bool = False


class Profile(Protocol):
    """A vendor's BMC."""

    @property
    def paths(self) -> Paths: ...
    @property
    def traits(self) -> Traits: ...
    @property
    def bios(self) -> Mapping[str, BiosAttribute]:
        """What its firmware can be set to, by the vendor's names."""
        ...

    @property
    def questions(self) -> Mapping[str, Callable[[View], Resource]]:
        """OEM actions that only ask, by path (a POST), like Dell's GetRemoteServicesAPIStatus."""
        ...

    def tree(self, view: View) -> Mapping[str, Resource]:
        """All resources, by path without trailing slash."""
        ...

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        """HTTP status and error body (DSP0266, "Error responses")."""
        ...

    def success(self) -> Resource:
        """The body of a PATCH that was applied."""
        ...

    def login_record(self, at: str, user: str, client: str) -> LogRecord:
        """The audit entry of a login."""
        ...
