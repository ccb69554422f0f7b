"""One request as the handlers see it, and the table of operations that they fill."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multidict import MultiDict

from clusterctl_lab.emulators.maas.oauth import User
from clusterctl_lab.emulators.maas.refusal import RefusedError, unrecognised

if TYPE_CHECKING:
    from clusterctl_lab.emulators.maas.service import Service

PREFIX = "/MAAS/api/2.0"
METHODS = ("GET", "POST", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class Text:
    """A 200 that is text/plain, not JSON."""

    text: str


@dataclass(slots=True)
class Call:
    """`form`: the body where it is a form; `json`: where it is JSON (which most operations ignore, as MAAS does)."""

    service: Service
    method: str
    path: str
    query: MultiDict[str]
    form: MultiDict[str]
    json: Mapping[str, Any] | None = None
    foreign_body: bool = False
    user: User | None = None
    args: dict[str, str] = field(default_factory=dict)

    @property
    def op(self) -> str | None:
        """From the query, or from the form."""
        return self.query.get("op") or self.form.get("op")

    @property
    def name(self) -> str:
        """The asking user's name."""
        return self.user.name if self.user else ""

    @property
    def admin(self) -> bool:
        return self.user is not None and self.user.admin

    def field(self, name: str, default: str = "") -> str:
        """Return a form field of an operation; answer 500 where the body is neither form nor JSON, as MAAS does."""
        if self.foreign_body:
            raise RefusedError(500, "'NoneType' object has no attribute 'get'")
        return self.form.get(name, default)

    def flag(self, name: str, default: bool) -> bool:
        return self.field(name, str(default)).lower() in ("true", "1", "yes", "on")

    def fields(self) -> MultiDict[str]:
        """All fields of a create or update call, which read JSON too."""
        merged = MultiDict(self.form)
        merged.extend({name: str(value) for name, value in (self.json or {}).items()})
        return merged

    def arg(self, name: str) -> str:
        return self.args[name]


Handler = Callable[[Call], Awaitable[Any] | Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """`anonymous`: open to requests without a key; `admin`: 403 to users who are none."""

    handler: Handler
    anonymous: bool = False
    admin: bool = False


class Routes:
    """Resource path → (method, op) → operation."""

    def __init__(self) -> None:
        self._resources: dict[re.Pattern[str], dict[tuple[str, str | None], Operation]] = {}

    def on(
        self, pattern: str, method: str, op: str | None = None, *, anonymous: bool = False, admin: bool = False
    ) -> Callable[[Handler], Handler]:
        """Register a handler for `/machines/{id}/` and the like."""
        regex = re.compile(PREFIX + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))

        def register(handler: Handler) -> Handler:
            self._resources.setdefault(regex, {})[method, op] = Operation(handler, anonymous, admin)
            return handler

        return register

    def include(self, other: Routes) -> None:
        for regex, operations in other._resources.items():
            self._resources.setdefault(regex, {}).update(operations)

    def find(self, call: Call) -> Operation:
        """The operation, with `call.args` filled. Raises 404, 405 or 400 as MAAS does."""
        for regex, operations in self._resources.items():
            match = regex.fullmatch(call.path)
            if match is None:
                continue
            call.args = match.groupdict()
            if call.method not in METHODS:
                raise _MethodNotAllowedError(sorted({method for method, _ in operations}))
            operation = operations.get((call.method, call.op))
            if operation is None or (call.user is None and not operation.anonymous):
                raise unrecognised(call.method, call.op)
            return operation
        raise RefusedError(404, f"Unknown API endpoint: {call.path}.")


class _MethodNotAllowedError(RefusedError):
    def __init__(self, methods: list[str]) -> None:
        super().__init__(405, "", {"Allow": ", ".join(methods)})
        self.content_type = "text/html"
