"""Requests to UFM: JSON over TLS, each sent once, answers bounded.

With a user and a password the API is below `/ufmRest`, with an access token below `/ufmRestV3`; both are sent as
`Authorization: Basic` (NVIDIA UFM Enterprise REST API Guide, "REST API Complementary Information").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from http import HTTPStatus
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import requests

from clusterctl.edges.answers import answer_session, read_body, send
from clusterctl.edges.redaction import Redaction
from clusterctl.edges.tally import Asked, count
from clusterctl.edges.tls import Trust, causes, distrust
from clusterctl.fleet.errors import (
    AuthenticationError,
    BusyError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.fabric.alarms import AlarmList, ManagedLink, ManagedPort, ManagedSystem, UnhealthyPort
from clusterctl.fleet.fabric.manager_jobs import ManagerJob
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Guid
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.formats.ufm.rest import (
    JOB_ID,
    job_of_action,
    read_alarms,
    read_events,
    read_job,
    read_jobs,
    read_links,
    read_ports,
    read_systems,
    read_unhealthy_ports,
    read_version,
)
from clusterctl.ports import Clock, Deadline
from clusterctl.ports.fabric import SwitchImage

T = TypeVar("T")

LIMITS = JsonLimits(size=256 << 20, values=8_000_000, depth=16, text=1 << 20)
"""A port has 800 bytes and 40 values; the largest fabrics have 200,000 ports."""
REQUEST_SECONDS = 120.0
_SHOWN = 300
_BUSY = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class UfmConnection(NeverPickled):
    """Where UFM is, and its login. `url` has no slash at its end; `zone`: the time zone of UFM's host."""

    url: str
    token: str = field(default="", repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)
    trust: Trust = field(default_factory=Trust)
    zone: tzinfo = UTC
    origin: Origin = Origin.REAL

    @property
    def base(self) -> str:
        return f"{self.url}/{'ufmRestV3' if self.token else 'ufmRest'}"

    @property
    def secrets(self) -> list[str]:
        return [text for text in (self.token, self.login[1] if self.login else "") if text]


def time_zone(name: str, where: str) -> tzinfo:
    """Return a time zone by its name. Raise `UsageError` for an unknown one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        remedy = "take a name such as Europe/Berlin: timedatectl list-timezones prints them"
        raise UsageError(f"there is no time zone {name!r}", where=where, remedy=remedy) from None


class UfmApi:
    """Reads UFM, and marks ports. Neither redirects nor a proxy's or .netrc's logins are followed."""

    def __init__(self, connection: UfmConnection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._redact = Redaction(connection.secrets)
        self._session = answer_session(connection.trust)
        self._session.auth = _Token(connection.token) if connection.token else connection.login

    def close(self) -> None:
        self._session.close()

    @property
    def url(self) -> str:
        return self._connection.url

    def version(self, deadline: Deadline) -> str:
        """Return UFM's version. Raise `ParseError` where something else answers there."""
        return self._read("/app/ufm_version", read_version, deadline).value

    def events(self, deadline: Deadline) -> Observed[AlarmList]:
        """Return the events that UFM still has."""
        return self._read("/app/events", self._in_zone(read_events), deadline)

    def alarms(self, deadline: Deadline) -> Observed[AlarmList]:
        """Return the alarms that are open."""
        return self._read("/app/alarms", self._in_zone(read_alarms), deadline)

    def ports(self, deadline: Deadline) -> Observed[tuple[ManagedPort, ...]]:
        return self._read("/resources/ports", read_ports, deadline)

    def links(self, deadline: Deadline) -> Observed[tuple[ManagedLink, ...]]:
        return self._read("/resources/links", read_links, deadline)

    def systems(self, deadline: Deadline) -> Observed[tuple[ManagedSystem, ...]]:
        return self._read("/resources/systems", read_systems, deadline)

    def unhealthy_ports(self, deadline: Deadline) -> Observed[tuple[UnhealthyPort, ...]]:
        """Return the ports that the subnet manager keeps out of its routes."""
        return self._read("/app/unhealthy_ports", read_unhealthy_ports, deadline)

    def jobs(self, deadline: Deadline, parent: str = "") -> Observed[tuple[ManagerJob, ...]]:
        """Return all jobs that UFM has, or the parts of one."""
        return self._read(f"/jobs?parent_id={_job_id(parent)}" if parent else "/jobs", read_jobs, deadline)

    def job(self, id_: str, deadline: Deadline) -> Observed[ManagerJob]:
        """Return one job."""
        return self._read(f"/jobs/{_job_id(id_)}", read_job, deadline)

    def isolate(self, port: PortId, deadline: Deadline) -> None:
        """Mark a port unhealthy: the subnet manager takes its link out of the routes, and keeps on discovering it."""
        self._mark({"ports": [_name(port)], "ports_policy": "UNHEALTHY", "action": "isolate"}, deadline)

    def release(self, port: PortId, deadline: Deadline) -> None:
        """Mark a port healthy again."""
        self._mark({"ports": [_name(port)], "ports_policy": "HEALTHY"}, deadline)

    def upgrade(self, switch: Guid, image: SwitchImage, deadline: Deadline) -> str:
        """Let a switch load and install an image; return the job's number.

        Action and parameters: https://github.com/Mellanox/ufm_sdk_3.0, scripts/ufm_devices/sw_upgrade_action.py.
        """
        self._redact.add([image.password])
        params = {
            "username": image.user,
            "password": image.password,
            "path": image.path,
            "image": image.name,
            "protocol": image.protocol,
            "server": image.server,
        }
        return self._act({"action": "sw_upgrade", "params": params}, switch, deadline)

    def reboot(self, switch: Guid, deadline: Deadline) -> str:
        """Reboot a switch; return the job's number (scripts/ufm_devices/reboot_action.py of NVIDIA's SDK)."""
        return self._act({"action": "reboot"}, switch, deadline)

    def _act(self, action: dict[str, Any], switch: Guid, deadline: Deadline) -> str:
        """Order an action on one system. Raise `OutcomeUnknownError` where UFM may have taken it."""
        target = {"object_type": "System", "identifier": "id", "object_ids": [str(switch)], "description": "clusterctl"}
        answer = self._answer("POST", "/actions", deadline, json=action | target)
        where = f"{self._connection.base}/actions"
        try:
            return job_of_action(answer.location, answer.body.decode(errors="replace"), where)
        except ParseError as error:
            raise OutcomeUnknownError(error.message, where=where, remedy=error.remedy) from None

    def _mark(self, content: dict[str, Any], deadline: Deadline) -> None:
        self._send("PUT", "/app/unhealthy_ports", deadline, json=content)

    def _in_zone(self, read: Callable[[Any, tzinfo, str], T]) -> Callable[[Any, str], T]:
        return lambda value, where: read(value, self._connection.zone, where)

    def _read(self, path: str, read: Callable[[Any, str], T], deadline: Deadline) -> Observed[T]:
        at = self._clock.now()
        content = self._send("GET", path, deadline)
        where = f"{self._connection.base}{path}"
        found = read(read_json(content, LIMITS, where=where), where)
        return Observed(found, (Evidence(f"GET {path}", self.url, at, self._connection.origin, content),))

    def _send(self, method: str, path: str, deadline: Deadline, **content: Any) -> bytes:
        return self._answer(method, path, deadline, **content).body

    def _answer(self, method: str, path: str, deadline: Deadline, **content: Any) -> _Answer:
        deadline.check("asking UFM")
        count(Asked.UFM)
        deadline = deadline.within(REQUEST_SECONDS)
        where = f"{self._connection.base}{path}"
        try:
            with send(self._session, requests.Request(method, where, **content), deadline) as answer:
                body = read_body(answer, LIMITS.size, deadline, "UFM", where)
                status, location = answer.status_code, answer.headers.get("location", "")
        except requests.RequestException as error:
            raise self._lost(method, where, error) from None
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._refusal(status, body, location, where)
        return _Answer(body, location)

    def _lost(self, method: str, where: str, error: requests.RequestException) -> EdgeError:
        untrusted = distrust(causes(error), "UFM", "fabric.ufm.ca_file", "fabric.ufm.tls_fingerprint")
        if untrusted is not None:
            untrusted.where = self.url
            return untrusted
        if method != "GET" and not isinstance(error, requests.exceptions.ConnectTimeout):
            remedy = "nothing: the next run looks at what came of it first"
            return OutcomeUnknownError(f"UFM's answer was lost ({type(error).__name__})", where=where, remedy=remedy)
        remedy = "check fabric.ufm.url, the network, and that UFM runs: ufm_ha_cluster status, on its host"
        return UnreachableError(f"UFM does not answer ({type(error).__name__})", where=where, remedy=remedy)

    def _refusal(self, status: int, body: bytes, location: str, where: str) -> EdgeError:
        if status < HTTPStatus.BAD_REQUEST:
            target = visible_line(location, 200) or "nowhere"
            remedy = "write the address that UFM itself uses as fabric.ufm.url"
            return EdgeError(f"UFM sends the request to {target} (HTTP {status})", where=where, remedy=remedy)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            remedy = "check fabric.ufm: the token or the user with its password, and that it may do this in UFM"
            return AuthenticationError(f"UFM refuses the login (HTTP {status})", where=where, remedy=remedy)
        if status in _BUSY:
            remedy = "try again later; where it stays, restart UFM on its host"
            return BusyError(f"UFM cannot answer now (HTTP {status})", where=where, remedy=remedy)
        reason = visible_line(self._redact(body[:4096].decode(errors="replace")), _SHOWN)
        return EdgeError(f"UFM refuses (HTTP {status}): {reason or 'no reason'}", where=where, remedy="see UFM's log")


@dataclass(frozen=True, slots=True)
class _Answer:
    """`location`: the header Location; empty where there is none."""

    body: bytes
    location: str


class _Token(requests.auth.AuthBase):
    """Adds UFM's access token to each request."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Basic {self._token}"
        return request


def _job_id(text: str) -> str:
    """Return the number of a job as it is. Raise `UsageError` for another text."""
    if not JOB_ID.fullmatch(text):
        raise UsageError("a job of UFM has a number", where=text, remedy="clusterctl fabric jobs lists them")
    return text


def _name(port: PortId) -> str:
    return f"{port.guid}_{port.number}"
