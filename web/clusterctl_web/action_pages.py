"""Actions on a node, or on a plan, as pages (form, preview to confirm, result) and as endpoints of the JSON API."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import ClaimLostError, ClusterctlError, ConflictError, UsageError
from clusterctl.operations.serial import to_data
from clusterctl_web.actions import Approval, Done, Orders, PageAction, Subjects
from clusterctl_web.api import json_response
from clusterctl_web.guard import LARGEST_FORM, actor_of, form_of, needs, require_role
from clusterctl_web.openapi import BASE
from clusterctl_web.rendering import Renderer

KEY = "idempotency-key"


@dataclass(frozen=True, slots=True)
class ActionPages:
    """The pages and endpoints that order something for one of the subjects."""

    orders: Orders
    renderer: Renderer
    subjects: Subjects

    def routes(self) -> list[Route]:
        path = f"{self.subjects.path}/{{name}}/actions/{{action}}"
        return [
            Route(path, self.form),
            Route(path, self.submit, methods=["POST"]),
            Route(BASE + path, self.api, methods=["POST"]),
        ]

    def _home(self, name: str) -> str:
        return f"{self.subjects.path}/{quote(name)}"

    @needs(UserRole.OPERATOR)
    async def form(self, request: Request) -> Response:
        """Show the form of an action."""
        action = self.subjects.action(request.path_params["action"])
        require_role(actor_of(request), action.role)
        return self._form(request, action)

    def _form(self, request: Request, action: PageAction, problem: ClusterctlError | None = None) -> Response:
        given = {one.name: form_of(request).text(one.name) for one in action.fields}
        status = 200 if problem is None else 400 if isinstance(problem, UsageError) else 409
        name = request.path_params["name"]
        about = {"subject": name, "home": self._home(name), "action": action}
        return self.renderer.html(request, "action.html.j2", status, **about, given=given, problem=problem)

    @needs(UserRole.OPERATOR)
    async def submit(self, request: Request) -> Response:
        """Show the preview; with its digest, carry the action out."""
        action, form = self.subjects.action(request.path_params["action"]), form_of(request)
        try:
            return await run_in_threadpool(self._submit, request, action, form.text("approved"))
        except (UsageError, ConflictError, ClaimLostError) as error:
            return self._form(request, action, error)

    def _submit(self, request: Request, action: PageAction, approved: str) -> Response:
        actor, node, form = actor_of(request), request.path_params["name"], form_of(request)
        values = action.values(form.text)
        if approved:
            approval = Approval(digest=approved, key=form.text("key"))
            done = self.orders.carry_out(actor, action, node, values, approval)
            target = f"/runs/{quote(done.run.name)}" if done.run else self._home(node)
            return RedirectResponse(target, status_code=303)
        preview = self.orders.preview(actor, action, node, values)
        return self.renderer.html(
            request,
            "confirm.html.j2",
            title=f"{action.title} {node}",
            preview=preview,
            target=request.url.path,
            values=values,
            key=secrets.token_urlsafe(24),
            back=self._home(node),
        )

    @needs(UserRole.OPERATOR)
    async def api(self, request: Request) -> Response:
        """Return the preview of an action; with its digest as `approved`, carry it out."""
        action = self.subjects.action(request.path_params["action"])
        require_role(actor_of(request), action.role)
        body = await json_body(request)
        return await run_in_threadpool(self._api, request, action, body)

    def _api(self, request: Request, action: PageAction, body: Mapping[str, str]) -> Response:
        actor, node = actor_of(request), request.path_params["name"]
        known = {one.name for one in action.fields} | {"approved"}
        for name in body:
            if name not in known:
                raise UsageError("there is no such field", where=name, remedy=f"one of {', '.join(sorted(known))}")
        values = action.values(lambda name: body.get(name, ""))
        if body.get("approved"):
            approval = Approval(digest=body["approved"], key=request.headers.get(KEY, ""))
            return done_json(self.orders.carry_out(actor, action, node, values, approval))
        return preview_json(self.orders.preview(actor, action, node, values))


async def json_body(request: Request) -> Mapping[str, str]:
    """Return the JSON object that a request sends, all values texts. Raises `UsageError` for anything else."""
    found = await read_json(request)
    if not all(isinstance(value, str) for value in found.values()):
        raise UsageError("is no JSON object of texts", where="body", remedy='send {"reason": "…"}')
    return found


async def read_json(request: Request) -> Mapping[str, Any]:
    """Return the JSON object that a request sends. Raises `UsageError` for anything else, and for one too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise UsageError("the request is too large", remedy=f"send at most {LARGEST_FORM >> 10} KiB")
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError("is no JSON object", where="body", remedy='send {"reason": "…"}')
    return found


def preview_json(preview: Any) -> Response:
    """Return a preview with its digest, which `approved` takes."""
    return json_response({"preview": to_data(preview), "digest": preview.digest})


def done_json(done: Done) -> Response:
    """Return a result, or the run that goes on (202)."""
    if done.run is not None:
        return json_response({"run": to_data(done.run)}, 202)
    return json_response({"result": to_data(done.result)})
