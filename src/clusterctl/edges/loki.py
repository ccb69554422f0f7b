"""Lines of nodes' logs in Grafana Loki.

Source: https://grafana.com/docs/loki/latest/reference/loki-http-api/ (`GET /loki/api/v1/query_range`, LogQL).
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from urllib.parse import urlsplit

import requests

from clusterctl.edges.answers import answer_session, read_body, send
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import resolve
from clusterctl.edges.tls import Trust, causes, distrust
from clusterctl.fleet.errors import AuthenticationError, EdgeError, UnreachableError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.node_logs import LOKI_BYTES, parse_range
from clusterctl.ports.deadline import Deadline
from clusterctl.ports.logs import LogLines, LogWindow
from clusterctl.site.monitoring import LokiSettings

_REQUEST_S = 60.0
_SHOWN = 300
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATH = "/loki/api/v1/query_range"


def site_loki(site: Site, settings: LokiSettings) -> Loki:
    """Return the site's Loki; reads its token now."""
    where = site.where("monitoring", "loki", "token")
    token = resolve(settings.token, site.folder, where) if settings.token is not None else ""
    return Loki(settings, token, site.path(settings.ca_file))


class Loki:
    """Meets `LogStore`. Follows no redirect, and uses no proxy and no .netrc."""

    def __init__(self, settings: LokiSettings, token: str, ca_file: str) -> None:
        self._settings = settings
        self.host = urlsplit(settings.url).netloc
        self._session = answer_session(Trust(ca_file=ca_file))
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        if settings.tenant:
            self._session.headers["X-Scope-OrgID"] = settings.tenant

    def read(self, node: str, window: LogWindow, deadline: Deadline) -> LogLines:
        """Return the newest lines of a node in the window. Whether older ones were deleted is not known."""
        parameters = {
            "query": log_query(self._settings.label, node, window.text),
            "start": str(_nanoseconds(window.since)),
            "end": str(_nanoseconds(window.until)),
            "limit": str(window.at_most + 1),
            "direction": "backward",
        }
        lines, unreadable = parse_range(self._get(parameters, deadline), where=self.host)
        cut = len(lines) > window.at_most
        return LogLines(lines=tuple(lines[-window.at_most :]), cut=cut, unreadable=unreadable)

    def _get(self, parameters: dict[str, str], deadline: Deadline) -> bytes:
        deadline.check(f"asking {self.host}")
        deadline = deadline.within(_REQUEST_S)
        try:
            request = requests.Request("GET", f"{self._settings.url}{_PATH}", params=parameters)
            answer = send(self._session, request, deadline)
            content = read_body(answer, LOKI_BYTES, deadline, "Loki", self.host)
        except requests.RequestException as error:
            untrusted = distrust(causes(error), self.host, "monitoring.loki.ca_file", "monitoring.loki.ca_file")
            if untrusted is not None:
                raise untrusted from None
            raise UnreachableError(
                f"Loki does not answer ({type(error).__name__})", where=self.host, remedy="check monitoring.loki.url"
            ) from None
        if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            remedy = "check monitoring.loki.token and .tenant"
            message = f"Loki refuses the request: HTTP {answer.status_code}"
            raise AuthenticationError(message, where=self.host, remedy=remedy)
        if answer.status_code != HTTPStatus.OK:
            text = visible_line(KNOWN(content.decode(errors="replace")), _SHOWN)
            raise EdgeError(f"Loki answers HTTP {answer.status_code}: {text}", where=self.host)
        return content


def log_query(label: str, node: str, text: str) -> str:
    """Return the LogQL of a node's lines with `text` in them, case ignored."""
    selector = f"{{{label}={_quoted(node)}}}"
    return f"{selector} |~ {_quoted('(?i)' + re.escape(text))}" if text else selector


def _quoted(text: str) -> str:
    """Return a string of LogQL, which are those of Go: JSON's, but without pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
