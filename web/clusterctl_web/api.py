"""The JSON API at /api/v1: what the pages show, with the keys of `--json`. Its description: /api/v1/openapi.json."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.fleet.errors import (
    AuthenticationError,
    ClaimLostError,
    ClusterctlError,
    ConflictError,
    PrivilegeError,
    UsageError,
)
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.peer_text import visible, visible_json
from clusterctl.operations.explanation import explain
from clusterctl.operations.incidents import history, listed, named
from clusterctl.operations.json_documents import (
    event_json,
    fault_json,
    incident_json,
    links_json,
    night_json,
    node_details_json,
    node_json,
    plan_json,
    rma_json,
    why_json,
    work_orders_json,
)
from clusterctl.operations.maintenance_status import every, found
from clusterctl.operations.metrics import FleetMetrics
from clusterctl.operations.nights import site_nights
from clusterctl.operations.operation import current_time
from clusterctl.operations.rma import known_rmas
from clusterctl_web.guard import SAFE
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.live_orders import LiveOrders
from clusterctl_web.openapi import BASE, document
from clusterctl_web.search import found_nodes, words_of

MOST_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Api:
    """Each method answers one path; it only reads."""

    live: LiveFleet
    orders: LiveOrders
    figures: FleetMetrics

    def routes(self) -> list[Route]:
        paths: dict[str, Callable[[Request], Any]] = {
            "/openapi.json": lambda _request: document(),
            "/nodes": self._nodes,
            "/nodes/{name}": self._node,
            "/nodes/{name}/why": self._why,
            "/nodes/{name}/events": self._events,
            "/nodes/{name}/evidence/{digest}": self._evidence,
            "/fabric": self._fabric,
            "/incidents": self._incidents,
            "/incidents/{name}": self._incident,
            "/nights": self._nights,
            "/plans": self._plans,
            "/plans/{name}": self._plan,
            "/rmas": self._rmas,
            "/work-orders": self._work_orders,
        }
        return [Route(BASE + path, answering(answer), methods=["GET"]) for path, answer in paths.items()]

    def _nodes(self, request: Request) -> Any:
        """Return all; with `stage` and `q` those of that stage, and with each word in their tile or in a part."""
        stage, now = request.query_params.get("stage", ""), current_time()
        found = [node for node in self.live.summaries() if not stage or node.stage.value == stage]
        if "q" in request.query_params:
            names = {*found_nodes(self.live, self.figures, words_of(request.query_params["q"]))}
            found = [node for node in found if node.name in names]
        return {"nodes": [node_json(node, now) for node in found]}

    def _node(self, request: Request) -> Any:
        state = self.live.node(request.path_params["name"])
        return node_details_json(state, self.live.context.journal.history(Stream.NODE, state.id), current_time())

    def _why(self, request: Request) -> Any:
        return why_json(explain(self.live.context, self.live.node(request.path_params["name"]), self.live.known()))

    def _events(self, request: Request) -> Any:
        """Return the newest events first; `before`: only older ones."""
        state = self.live.node(request.path_params["name"])
        before = _number(request, "before", 1 << 62)
        limit = min(_number(request, "limit", 100), MOST_EVENTS)
        events = [event for event in self.live.context.journal.history(Stream.NODE, state.id) if event.seq < before]
        return {"events": [event_json(event) for event in reversed(events[max(0, len(events) - limit) :])]}

    def _evidence(self, request: Request) -> Any:
        item = self.live.evidence(request.path_params["name"], Digest(request.path_params["digest"]))
        return {
            "digest": item.digest,
            "source": item.source,
            "where": item.where,
            "at": item.at.isoformat(),
            "origin": item.origin.value,
            "text": visible(item.content.decode(errors="replace")),
        }

    def _fabric(self, request: Request) -> Any:
        del request
        context = self.live.context
        judged = list(context.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED))
        last = judged[-1] if judged else None
        return {
            "faults": [fault_json(fault) for fault in context.faults()],
            "links": links_json(last.payload) if last else None,  # type: ignore[arg-type]
            "judged_at": last.at.isoformat() if last else None,
        }

    def _incidents(self, request: Request) -> Any:
        """Return the open ones; with `all=1` those that are resolved as well."""
        whole = request.query_params.get("all", "") == "1"
        return {"incidents": [incident_json(one) for one in listed(self.live.context, resolved=whole)]}

    def _incident(self, request: Request) -> Any:
        found = named(self.live.context, request.path_params["name"])
        events = history(self.live.context, found.state.id)
        return {**incident_json(found), "history": [event_json(event) for event in events]}

    def _rmas(self, request: Request) -> Any:
        """Return the open ones; with `all=1` closed ones as well."""
        whole, now = request.query_params.get("all", "") == "1", current_time()
        return {"rmas": [rma_json(one, now) for one in known_rmas(self.live.context) if whole or one.open]}

    def _nights(self, request: Request) -> Any:
        del request
        return {"nights": [night_json(night) for night in site_nights(self.live.context).nights]}

    def _plans(self, request: Request) -> Any:
        del request
        return {"plans": [plan_json(one) for one in reversed(every(self.live.context))]}

    def _plan(self, request: Request) -> Any:
        return plan_json(found(self.live.context, request.path_params["name"]))

    def _work_orders(self, request: Request) -> Any:
        del request
        return work_orders_json(self.orders.current())


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, "")
    if not given:
        return default
    if not given.isdecimal() or len(given) > 18:
        raise UsageError("is no number", where=name, remedy="give a whole number")
    return int(given)


def answering(answer: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that sends a result, or an error, as JSON."""

    async def endpoint(request: Request) -> Response:
        try:
            return json_response(await run_in_threadpool(answer, request))
        except ClusterctlError as error:
            return json_response(error_json(error), status_of(error, request.method))

    return endpoint


def status_of(error: ClusterctlError, method: str) -> int:
    """Return the HTTP status of an error."""
    match error:
        case UsageError():
            return 404 if method in SAFE else 400
        case PrivilegeError():
            return 403
        case AuthenticationError():
            return 401
        case ConflictError() | ClaimLostError():
            return 409
    return 503


def error_json(error: ClusterctlError) -> dict[str, dict[str, str]]:
    """Return the error as `--json` prints it."""
    return {
        "error": {"kind": error.kind, "message": error.message, "where": error.where, "remedy": error.remedy},
    }


def json_response(value: object, status: int = 200) -> Response:
    """Return JSON in which what a terminal acts on is escaped."""
    return Response(visible_json(json.dumps(value, ensure_ascii=False)), status, media_type="application/json")
