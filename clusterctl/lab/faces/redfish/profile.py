"""What a vendor decides: what the tree contains, where its actions are, how its errors read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.lab.faces.redfish.resource import Resource, Tree
from clusterctl.lab.faces.redfish.view import LogRecord, View


class Problem(enum.Enum):
    """Why a request is refused; a profile words it and chooses the HTTP status."""

    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not found"
    METHOD_NOT_ALLOWED = "method not allowed"
    MALFORMED_JSON = "malformed JSON"
    PROPERTY_UNKNOWN = "property unknown"
    PROPERTY_MISSING = "property missing"
    VALUE_NOT_IN_LIST = "value not in list"
    ALREADY_ON = "already on"
    ALREADY_OFF = "already off"
    TOO_MANY_SESSIONS = "too many sessions"


class RefusedError(ClusterctlError):
    """A request is refused; `args_` fill the vendor's message."""

    kind = "refused"

    def __init__(self, problem: Problem, *args_: str) -> None:
        super().__init__(f"{problem.value}: {', '.join(args_)}" if args_ else problem.value)
        self.problem = problem
        self.args_ = args_


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a vendor puts what can be written to."""

    root: str
    sessions: str
    system: str
    reset: str
    clear_sel: str


class Profile(Protocol):
    """A vendor's BMC; `session_timeout` in seconds of idleness."""

    @property
    def paths(self) -> Paths: ...
    @property
    def reset_types(self) -> tuple[str, ...]: ...
    @property
    def boot_modes(self) -> tuple[str, ...]: ...
    @property
    def max_sessions(self) -> int: ...
    @property
    def session_timeout(self) -> float: ...

    def tree(self, view: View) -> Tree:
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
