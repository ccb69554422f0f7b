"""Who may use the web page: roles, users and API tokens. No password and no token stands here, only digests of them."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.peer_text import visible_line

SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 256
PROVIDED = "oidc:"
"""Begins the name of each user of the identity provider."""
_NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


class UserRole(enum.Enum):
    """What a user may do: read; order actions on nodes; everything that the page offers."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return _RANKS[self]

    def includes(self, needed: UserRole) -> bool:
        """Return whether this role may do what `needed` may do."""
        return self.rank >= needed.rank


_RANKS = {role: rank for rank, role in enumerate(UserRole)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebUser:
    """A user of the site. `changed_at`: when the password was set; sessions that are older have ended."""

    name: str
    role: UserRole
    digest: str = field(repr=False)
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token of the API. `digest`: SHA-256 of the token, which has 256 random bits and needs no slow digest.

    `jobs_of`: it sees all of the jobs of this user of the scheduler; empty for none.
    """

    name: str
    role: UserRole
    digest: str = field(repr=False)
    made_at: datetime
    made_by: str
    expires_at: datetime
    jobs_of: str = ""

    def expired(self, now: datetime) -> bool:
        return now >= self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user as the identity provider has proven him. `name` is how the journal names him."""

    name: str
    role: UserRole


def user_name(text: str) -> str:
    """Return the name of a local user or token. Raises `UsageError`."""
    if _NAME.fullmatch(text):
        return text
    remedy = "give lower-case letters, digits, dots, dashes and underscores, a letter first, 32 at most"
    raise UsageError("is no user name", where=visible_line(text, 40), remedy=remedy)


def new_password(text: str) -> str:
    """Return a password that may be set (NIST SP 800-63B: length alone counts). Raises `UsageError`."""
    if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD:
        remedy = f"give {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
        raise UsageError(f"the password has {len(text)} characters", where="password", remedy=remedy)
    return text
