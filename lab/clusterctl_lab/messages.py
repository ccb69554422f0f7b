"""The messages between daemon and command line: one JSON object per line; errors are messages too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError

Message = Mapping[str, Any]
LIMIT = 4 * 1024 * 1024
"""Bytes in a line: the status of a thousand machines is well below."""


def encode(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Raises ValueError for what is no JSON object."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 — one error for whatever is not a message
    return message


def error_message(error: Exception) -> Message:
    """Return an error as a message; an unexpected one is described, its traceback stays in the log."""
    if isinstance(error, ClusterctlError):
        body = {"kind": error.kind, "message": error.message, "where": error.where, "remedy": error.remedy}
        return {"error": body}
    words = f"{type(error).__name__}: {error}"
    remedy = "Look at the lab's log; this is a defect of clusterctl or of the machine."
    return {"error": {"kind": EnvironmentBrokenError.kind, "message": words, "where": "", "remedy": remedy}}


def raise_error(message: Message) -> None:
    """Raise the error that the message carries, if it does, in its own class."""
    body = message.get("error")
    if body is not None:
        kinds = {kind.kind: kind for kind in _family(ClusterctlError)}
        error = kinds.get(body["kind"], ClusterctlError)
        raise error(body["message"], where=body["where"], remedy=body["remedy"])


def _family(root: type[ClusterctlError]) -> Iterator[type[ClusterctlError]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)
