"""The webhook of Alertmanager: `POST /alerts` with a bearer token of an operator."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.alertmanager import LARGEST
from clusterctl.operations import alerts
from clusterctl.operations.context import SiteContext
from clusterctl.operations.serial import to_data
from clusterctl_web.guard import actor_of
from clusterctl_web.sessions import Proof


@dataclass(frozen=True, slots=True)
class AlertHook:
    """Takes what Alertmanager posts."""

    context: SiteContext

    def routes(self) -> list[Route]:
        return [Route("/alerts", self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        """Return the numbers of posted and of changed alerts.

        Alertmanager repeats a post that failed with 5xx at once, and one that failed with 4xx with the group's next
        one. What is too large will not fit later either: it becomes an incident.
        """
        if actor_of(request).proof is not Proof.TOKEN:
            return _refused("alerts are posted with a token", 403)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST:
                reason = f"is larger than {LARGEST >> 20} MiB"
                await run_in_threadpool(alerts.refuse, self.context, reason)
                return _refused(reason, 413, alerts.TOO_LARGE_REMEDY)
        try:
            received = await run_in_threadpool(alerts.receive, self.context, bytes(body))
        except ParseError as error:
            return _refused(str(error), 400)
        return JSONResponse(to_data(received))


def _refused(message: str, status: int, remedy: str = "") -> Response:
    return JSONResponse({"error": {"kind": "parse", "message": message, "where": "alerts", "remedy": remedy}}, status)
