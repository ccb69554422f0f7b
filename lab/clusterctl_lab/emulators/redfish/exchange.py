"""Requests of a client and answers of a BMC."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource


@dataclass(frozen=True, slots=True)
class Request:
    """The relevant parts of an HTTP request.

    slash          the path was written with a slash at its end; the BMC removes it
    token          X-Auth-Token
    authorization  the Authorization header
    query          the text after the path's question mark, decoded
    if_match       If-Match; empty: not sent
    encoding       Accept-Encoding
    parts          of a multipart body, by the name of the form field
    reused         it is not the first one on its connection
    """

    method: str
    path: str
    body: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    authorization: str = field(default="", repr=False)
    client: str = ""
    query: str = ""
    if_match: str = ""
    encoding: str = ""
    parts: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    reused: bool = False
    slash: bool = False

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def json(self) -> Mapping[str, Any]:
        """The body as an object; nothing at all counts as an empty one."""
        return json_object(self.body)


class Delivery(enum.Enum):
    """WHOLE; CUT: the connection ends in the middle of the body; LOST: it ends instead of an answer."""

    WHOLE = "whole"
    CUT = "cut"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` None: no content. `raw`, where present, is sent instead of `body`. `delay` in seconds."""

    status: int
    body: Resource | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delivery: Delivery = Delivery.WHOLE
    delay: float = 0.0

    @property
    def content(self) -> bytes | None:
        """The bytes of the body; None: no content."""
        if self.raw is not None or self.body is None:
            return self.raw
        return json.dumps(self.body).encode()


def json_object(raw: bytes) -> Mapping[str, Any]:
    """Refuses what is no JSON object; nothing at all counts as an empty one."""
    try:
        body = json.loads(raw or b"{}")
    except (ValueError, RecursionError) as error:
        raise RefusedError(Problem.MALFORMED_JSON) from error
    if not isinstance(body, dict):
        raise RefusedError(Problem.MALFORMED_JSON)
    return body


def required(body: Mapping[str, Any], key: str, kind: type = str) -> Any:
    """Return the property, which must exist and have the right JSON type."""
    if key not in body:
        raise RefusedError(Problem.PROPERTY_MISSING, key)
    if not isinstance(body[key], kind):
        raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(body[key]), key)
    return body[key]


def only(body: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse a property that is not `known`."""
    for key in body:
        if key not in known:
            raise RefusedError(Problem.PROPERTY_UNKNOWN, key)
