"""How a BMC behaves, apart from what its tree contains: a vendor's profile has one of these, and most quirks
(`quirks/`) are nothing but a change to it on one machine.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Etag(enum.Enum):
    """Which ETag a GET carries, as header and as `@odata.etag` (RFC 9110, section 8.8.3)."""

    NONE = "none"
    STRONG = "strong"
    WEAK = "weak"


class IfMatch(enum.Enum):
    """What a PATCH makes of If-Match (DSP0266, "Protecting against the lost update problem").

    IGNORED   it is not looked at
    HONOURED  412 where it names another state than the present one
    REQUIRED  likewise, and 428 where it is not there
    REFUSED   412 wherever it is there (iDRAC9 of newer firmware, which gives no ETag either)
    """

    IGNORED = "ignored"
    HONOURED = "honoured"
    REQUIRED = "required"
    REFUSED = "refused"


class Mode(enum.Enum):
    """What a PATCH of the Boot object makes of BootSourceOverrideMode.

    OPTIONAL   it may be sent
    REQUIRED   without it the override is refused (Supermicro)
    READ_ONLY  with it the override is refused (some HPE)
    """

    OPTIONAL = "optional"
    REQUIRED = "required"
    READ_ONLY = "read only"


@dataclass(frozen=True, slots=True)
class BootRules:
    """`targets` and `modes` are the values that a PATCH may set; `whole`: target, enabled and mode must come together
    (AMI).
    """

    targets: tuple[str, ...] = ("None", "Pxe", "Hdd", "Cd", "UefiHttp")
    modes: tuple[str, ...] = ("UEFI",)
    mode: Mode = Mode.OPTIONAL
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Lockout:
    """After so many wrong passwords no login works for so many seconds (AccountLockoutThreshold and -Duration)."""

    tries: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Traits:
    """Times are in seconds.

    reset_types       types that ComputerSystem.Reset accepts
    session_timeout   idle time after which a session ends
    session_requests  number of requests after which a session ends; None: no limit
    task_id           format of a task's id, by its number: `JID_{:012d}` at Dell
    account_id        id of the machine's one account among the vendor's accounts
    password_length   the shortest and the longest that is accepted
    lockout           None: wrong passwords lock no account
    post_busy         changes of the machine are refused while it is in POST (HPE)
    bios_jobs         pending BIOS attributes wait for a job, and block further ones once they have it (Dell)
    refuses_identity  406 to `Accept-Encoding: identity`
    must_change_password  403 to everything but AccountService and sessions: the factory's password (GB200, DGX)
    closes_reused     a second request on one connection is dropped with it (HPE)
    already           the HTTP status of a reset to the state that the machine is in; 0: as the profile words it
    """

    reset_types: tuple[str, ...]
    max_sessions: int
    session_timeout: float
    boot: BootRules = BootRules()
    session_requests: int | None = None
    account_id: str = "1"
    task_id: str = "{}"
    password_length: tuple[int, int] = (0, 40)
    etag: Etag = Etag.NONE
    if_match: IfMatch = IfMatch.IGNORED
    lockout: Lockout | None = None
    post_busy: bool = False
    bios_jobs: bool = False
    refuses_identity: bool = False
    must_change_password: bool = False
    closes_reused: bool = False
    already: int = 0
