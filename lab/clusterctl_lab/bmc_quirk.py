"""How a BMC may misbehave. What each does is in `faces/redfish/manners/`, one file each."""

from __future__ import annotations

import enum


class Manner(enum.Enum):
    """Data on a machine's BMC (`Bmc.manners`); none by default. The values are the names that `lab inject` takes."""

    REVERTS_BOOT = "reverts-boot"
    WEAK_ETAG = "weak-etag"
    IF_MATCH_REQUIRED = "if-match-required"
    IF_MATCH_REFUSED = "if-match-refused"
    REFUSES_IDENTITY = "refuses-identity"
    SPURIOUS_401 = "spurious-401"
    LOCKS_OUT = "locks-out"
    MUST_CHANGE_PASSWORD = "must-change-password"  # noqa: S105 — no password
    SESSION_LIMIT = "session-limit"
    ENDS_SESSIONS = "ends-sessions"
    POST_BUSY = "post-busy"
    ALREADY_IS_400 = "already-is-400"
    UNAVAILABLE = "unavailable"
    SLOW = "slow"
    BROKEN_JSON = "broken-json"
    MISSING_MEMBERS = "missing-members"
    WRONG_TYPES = "wrong-types"
    REDIRECTS = "redirects"
    CUTS_BODIES = "cuts-bodies"
    LOSES_ANSWERS = "loses-answers"
    CLOSES_REUSED = "closes-reused"
    OTHER_CERTIFICATE = "other-certificate"
    EXPIRED_CERTIFICATE = "expired-certificate"
