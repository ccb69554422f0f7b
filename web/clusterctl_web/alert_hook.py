"""The webhook of Alertmanager: `POST /alerts` with a bearer token of an operator."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from clusterctl.fleet.errors import ParseError
from clusterctl.operations import alerts
from clusterctl.operations.context import SiteContext
from clusterctl.operations.serial import to_data
from clusterctl_web.guard import actor_of
from clusterctl_web.sessions import Proof

LARGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class AlertHook:
    """Takes what Alertmanager posts."""

    context: SiteContext

    def routes(self) -> list[Route]:
        return [Route("/alerts", self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        """Return the numbers of posted and of changed alerts.

        Alertmanager repeats a post that failed with 5xx, and drops one that failed with 4xx.
        """
        if actor_of(request).proof is not Proof.TOKEN:
            return _refused("alerts are posted with a token", 403)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST:
                return _refused(f"is larger than {LARGEST >> 20} MiB", 413)
        try:
            received = await run_in_threadpool(alerts.receive, self.context, bytes(body))
        except ParseError as error:
            return _refused(str(error), 400)
        return JSONResponse(to_data(received))


def _refused(message: str, status: int) -> Response:
    return JSONResponse({"error": {"kind": "parse", "message": message, "where": "alerts", "remedy": ""}}, status)
