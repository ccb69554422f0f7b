"""MAAS's refusals: one plain sentence, or `{field: [messages]}` as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Fields = Mapping[str, Sequence[str]]


class RefusedError(Exception):
    """An answer of 400 or more. `content`: text/plain (empty for most 403), or the fields of an invalid form."""

    def __init__(self, status: int, content: str | Fields = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.content = content
        self.headers = dict(headers or {})
        self.content_type = "text/plain"


class UnauthorisedError(RefusedError):
    """401: the OAuth layer's own answer, text/html."""

    def __init__(self, reason: str) -> None:
        super().__init__(401, f"Authorization Error: {reason}", {"WWW-Authenticate": 'OAuth realm="OAuth"'})
        self.content_type = "text/html"


def bad_form(**fields: str) -> RefusedError:
    """400 with one message per field."""
    return RefusedError(400, {name: [message] for name, message in fields.items()})


def forbidden() -> RefusedError:
    return RefusedError(403)


def no_such(kind: str) -> RefusedError:
    return RefusedError(404, f"No {kind} matches the given query.")


def unrecognised(method: str, op: str | None) -> RefusedError:
    """Refuse an unknown operation; also the answer to a request without an OAuth header."""
    return RefusedError(400, f"Unrecognised signature: method={method} op={op}")
