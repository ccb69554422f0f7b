"""The names of BMC quirks. What each one does is in `emulators/redfish/quirks/`."""

from __future__ import annotations

import enum


class BmcQuirk(enum.Enum):
    """Data of a machine's BMC (`Bmc.quirks`); by default it has none. The values are the names for `lab inject`."""

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
    NO_SESSIONS = "no-sessions"
    FAILS_EXPAND = "fails-expand"
    NO_UTF8 = "no-utf8"
    BLANK_FAILURE = "blank-failure"
