"""Jobs as pages and as endpoints of the JSON API: for their owners, who have no rights on the controller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.operations.downtime import run_time_json
from clusterctl.operations.job_checklist import Answer
from clusterctl.operations.job_documents import answers_json, differences_json, stacks_json
from clusterctl.operations.job_views import JobFound, JobReader, JobViews, shown_failure, shown_run
from clusterctl_web.api import json_response
from clusterctl_web.guard import actor_of
from clusterctl_web.openapi import BASE
from clusterctl_web.rendering import Renderer


@dataclass(frozen=True, slots=True)
class JobPages:
    """The list of jobs, and each of them."""

    views: JobViews
    renderer: Renderer

    def routes(self) -> list[Route]:
        read: dict[str, Callable[[Request], Any]] = {
            "/jobs": self._list,
            "/jobs/{job}": self._job,
            "/jobs/{job}/why": self._why,
            "/jobs/{job}/checklist": self._checklist,
            "/jobs/{job}/diff": self._diff,
        }
        collect = {
            "/jobs/{job}/why": self._collect,
            "/jobs/{job}/stacks": self._stacks,
            "/jobs/{job}/stop": self._stop,
        }
        return [
            Route("/jobs", _threaded(self.list)),
            Route("/jobs/{job}", _threaded(self.show)),
            Route("/jobs/{job}/why", _threaded(self.collect), methods=["POST"]),
            Route("/jobs/{job}/stacks", _threaded(self.stacks), methods=["POST"]),
            Route("/jobs/{job}/stop", _threaded(self.stop), methods=["POST"]),
            *(Route(BASE + path, _json(answer), methods=["GET"]) for path, answer in read.items()),
            *(Route(BASE + path, _json(answer), methods=["POST"]) for path, answer in collect.items()),
        ]

    def _list(self, request: Request) -> Any:
        """Return the supervised runs, and the failed jobs that belong to none."""
        reader = reader_of(request)
        return {
            "runs": [shown_run(one, reader) for one in self.views.runs()],
            "failures": [shown_failure(one, reader) for one in self.views.failures()],
        }

    def _job(self, request: Request) -> Any:
        reader, found = reader_of(request), self.views.find(request.path_params["job"])
        return {
            "job": found.job,
            "user": found.owner,
            "run": shown_run(found.run, reader) if found.run is not None else None,
            "failure": shown_failure(found, reader),
            "downtime": run_time_json(found.time) if found.time is not None else None,
        }

    def _why(self, request: Request) -> Any:
        return self.views.why(reader_of(request), request.path_params["job"])

    def _collect(self, request: Request) -> Any:
        return self.views.collect(reader_of(request), request.path_params["job"])

    def _stacks(self, request: Request) -> Any:
        return stacks_json(self.views.stacks(reader_of(request), request.path_params["job"]))

    def _stop(self, request: Request) -> Any:
        """Return the run whose end was ordered."""
        reader = reader_of(request)
        return {"run": shown_run(self.views.stop(reader, request.path_params["job"]), reader)}

    def _checklist(self, request: Request) -> Any:
        return answers_json(self.views.checklist(reader_of(request), request.path_params["job"]))

    def _diff(self, request: Request) -> Any:
        """Compare with the job of the query `with`."""
        other = request.query_params.get("with", "")
        if not other:
            raise UsageError("names no second job", where="with", remedy="give the other job: ?with=JOBID")
        return differences_json(self.views.diff(reader_of(request), request.path_params["job"], other))

    def list(self, request: Request) -> Response:
        return self.renderer.html(request, "jobs.html.j2", **self._list(request))

    def show(self, request: Request) -> Response:
        reader, name = reader_of(request), request.path_params["job"]
        found = self.views.find(name)
        why, problem = self._shown_why(reader, found)
        return self.renderer.html(
            request,
            "job.html.j2",
            **{**self._job(request), "job": found},
            why=why,
            problem=problem,
            own=reader.sees(found.owner),
            answers=self._answers(reader, found, name),
        )

    def _answers(self, reader: JobReader, found: JobFound, name: str) -> Sequence[Answer]:
        """Return the checklist of a run; nothing where it is another user's, or no manifest is kept."""
        if found.run is None or not reader.sees(found.owner):
            return ()
        try:
            return self.views.checklist(reader, name)
        except UsageError:
            return ()

    def _shown_why(self, reader: JobReader, found: JobFound) -> tuple[dict[str, Any] | None, str]:
        """Return why the job failed, or why that is not shown."""
        if not found.job:
            return None, ""
        try:
            return self.views.why(reader, found.job), ""
        except UsageError:
            return None, ""
        except ConflictError as error:
            return None, error.message

    def collect(self, request: Request) -> Response:
        self._collect(request)
        return RedirectResponse(f"/jobs/{quote(request.path_params['job'], safe='')}#why", status_code=303)

    def stop(self, request: Request) -> Response:
        self._stop(request)
        return RedirectResponse(f"/jobs/{quote(request.path_params['job'], safe='')}", status_code=303)

    def stacks(self, request: Request) -> Response:
        name = request.path_params["job"]
        found = self.views.stacks(reader_of(request), name)
        return self.renderer.html(request, "job_stacks.html.j2", name=name, stacks=found)


def reader_of(request: Request) -> JobReader:
    """Return who asks."""
    actor = actor_of(request)
    return JobReader(name=actor.name, role=actor.role, user=actor.jobs_of)


def _threaded(page: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(page, request)

    return endpoint


def _json(answer: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that sends a result as JSON; errors become documents in the application."""

    async def endpoint(request: Request) -> Response:
        return json_response(await run_in_threadpool(answer, request))

    return endpoint
