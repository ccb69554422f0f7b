"""Requests to a ticket system: JSON over TLS, each sent once, answers bounded."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests

from clusterctl.edges.answers import answer_session, keep_body, read_body, send
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.tls import Trust, causes, distrust
from clusterctl.fleet.errors import (
    AuthenticationError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    PrivilegeError,
    UnreachableError,
)
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.ports.deadline import Deadline

LIMITS = JsonLimits(size=8 << 20, values=200_000, depth=32, text=1 << 20)
REQUEST_S = 30.0
_SHOWN = 300


class TicketApi:
    """A ticket system's HTTP API. Neither redirects nor a proxy's or .netrc's logins are followed."""

    def __init__(self, url: str, *, ca_file: str = "", bearer: str = "", basic: tuple[str, str] | None = None) -> None:
        self._url = url
        self.host = urlsplit(url).netloc
        self._session = answer_session(Trust(ca_file=ca_file))
        self._session.auth = _Bearer(bearer) if bearer else basic

    def get(self, path: str, deadline: Deadline, params: Mapping[str, str] | None = None) -> Any:
        """Return the JSON of an answer; None for status 404."""
        answer = self._send("GET", path, deadline, params=params)
        return None if answer.status_code == HTTPStatus.NOT_FOUND else self._json(answer, path)

    def post(self, path: str, deadline: Deadline, **content: Any) -> Any:
        """Send once. Raise `OutcomeUnknownError` where it may have taken effect."""
        return self._change("POST", path, deadline, **content)

    def patch(self, path: str, deadline: Deadline, **content: Any) -> Any:
        """Send once. Raises as `post`."""
        return self._change("PATCH", path, deadline, **content)

    def _change(self, method: str, path: str, deadline: Deadline, **content: Any) -> Any:
        answer = self._send(method, path, deadline, **content)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise EdgeError("there is no such resource", where=f"{self.host}{path}", remedy="check url and project")
        return self._json(answer, path)

    def _send(self, method: str, path: str, deadline: Deadline, **content: Any) -> requests.Response:
        deadline.check(f"asking {self.host}")
        deadline = deadline.within(REQUEST_S)
        where = f"{self.host}{path}"
        try:
            answer = send(self._session, requests.Request(method, f"{self._url}{path}", **content), deadline)
            keep_body(answer, read_body(answer, LIMITS.size, deadline, self.host, where))
        except (requests.RequestException, ParseError) as error:
            raise self._failed(method, where, error) from None
        self._check(answer, where, method)
        return answer

    def _failed(self, method: str, where: str, error: Exception) -> EdgeError:
        untrusted = distrust(causes(error), self.host, "tickets.ca_file", "tickets.ca_file")
        if untrusted is not None:
            return untrusted
        if method == "GET" or isinstance(error, requests.ConnectTimeout):
            return UnreachableError(
                f"does not answer ({type(error).__name__})", where=where, remedy="check tickets.url"
            )
        remedy = "nothing: the next run looks for the result first"
        return OutcomeUnknownError(f"no answer came ({type(error).__name__})", where=where, remedy=remedy)

    def _check(self, answer: requests.Response, where: str, method: str) -> None:
        status = answer.status_code
        if status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.NOT_FOUND:
            return
        text = visible_line(KNOWN(answer.content.decode(errors="replace")), _SHOWN)
        message = f"HTTP {status}: {text}" if text else f"HTTP {status}"
        if status == HTTPStatus.UNAUTHORIZED:
            raise AuthenticationError("the token is refused", where=where, remedy="renew the token of tickets.token")
        if status == HTTPStatus.FORBIDDEN:
            raise PrivilegeError(message, where=where, remedy="let the token's account read and write tickets")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and method != "GET":
            raise OutcomeUnknownError(message, where=where, remedy="nothing: the next run looks for the result first")
        raise EdgeError(message, where=where, remedy="check the section tickets of site.yml")

    def _json(self, answer: requests.Response, path: str) -> Any:
        if not answer.content:
            return None
        return read_json(answer.content, LIMITS, where=f"{self.host}{path}")


class _Bearer(requests.auth.AuthBase):
    """Adds the token to each request."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def text_of(value: Any, name: str, where: str) -> str:
    """Return a text field of an answer. Raise `ParseError` where it is missing."""
    found = value.get(name) if isinstance(value, dict) else None
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if not isinstance(found, str) or not found:
        raise ParseError(f"the answer has no {name}", where=where)
    return visible_line(found, _SHOWN)


def key_of(value: Any, name: str, where: str) -> str:
    """Return the key of a ticket, which becomes a part of paths: letters, digits, `-` and `_` only."""
    key = text_of(value, name, where)
    if not key.isascii() or not key.replace("-", "").replace("_", "").isalnum():
        raise ParseError("the key of a ticket has other characters than letters, digits, - and _", where=where)
    return key


def list_of(value: Any, where: str) -> list[Any]:
    """Return an answer that is a list. Raise `ParseError` where it is none."""
    if not isinstance(value, list):
        raise ParseError("the answer is no list", where=where)
    return value
