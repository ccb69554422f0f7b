"""Supervised runs of users without rights on the controller: ordered here, submitted by their users.

The service never submits in another user's name, and holds no credential of one. It chooses the nodes. The
user's own `sbatch` submits the first attempt to them, and each further one held (`job_inputs.submissions`); the watcher
finds them by comment and user, gives a held one its nodes once it is needed, and releases it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.jobs.progress import PATTERN, reader
from clusterctl.jobs.supervision import SupervisedRun
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_collect import require_jobs
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_manifest import manifest
from clusterctl.operations.job_run import (
    SCHEDULER_S,
    alone,
    hold_spares,
    intended,
    placed,
    placement_now,
)
from clusterctl.operations.job_runs import listed, named
from clusterctl.operations.operation import Control, Event, Preview
from clusterctl.ports import Deadline

MOST_WORDS = 2000
"""Arguments, options and variables of one order, together; the request's size is limited as well."""
_TEXT = 4096


def preview(context: SiteContext, user: str, request: JobRunRequest) -> Preview:
    """Return the nodes that the run would get now. Raises `UsageError` where a field is wrong or too few are free."""
    _check(context, user, request)
    with closing(context.adapters(Access.READ)) as adapters:
        chosen = placement_now(context, adapters, request.nodes, request.spares)
    return placed(Path(request.script).name, chosen, request.spares).of(request)


def order(context: SiteContext, user: str, request: JobRunRequest, control: Control) -> SupervisedRun:
    """Order the run, and intend its first attempt. Nothing is submitted.

    Raises `ConflictError` where the preview is another one by now, or the user has too many open runs.
    """
    control.require(preview(context, user, request))
    name = f"run-{context.run}"
    with closing(context.adapters(Access.READ)) as adapters, alone(context, name, control) as claim:
        require_jobs(context, adapters)
        deadline = Deadline.after(SCHEDULER_S, control.cancelled)
        placement = placement_now(context, adapters, request.nodes, request.spares)
        evidence = manifest(context, _part(request), request.variables, [one.name for one in placement.chosen])
        context.journal.store([evidence])
        intent = intended(name, 1, placement, ())
        events = [
            NewEvent(Stream.JOB, name, request.ordered(user)),
            NewEvent(Stream.JOB, name, intent, (evidence.digest,)),
        ]
        context.journal.append(events, claim=claim)
        found = named(context, name)
        if trouble := hold_spares(context, adapters, found, deadline):
            control.on_event(Event(text=trouble))
    return found


def _check(context: SiteContext, user: str, request: JobRunRequest) -> None:
    if not user:
        remedy = "have a token made for your jobs: clusterctl web token add NAME --jobs-of USER"
        raise UsageError("the token is for no user's jobs", where="token", remedy=remedy)
    _check_limits(context, user, request)
    _check_texts(request)
    for name in request.readers:
        if name.startswith(PATTERN):
            remedy = "use another reader: a pattern can keep the controller busy, so that it is the operators' alone"
            raise UsageError("patterns are not taken from users", where="readers", remedy=remedy)
        reader(name)


def _check_limits(context: SiteContext, user: str, request: JobRunRequest) -> None:
    """Raise where the user has as many open runs or spares as the site allows (`jobs` in site.yml)."""
    settings = context.site.settings.jobs
    policy = request.policy
    if request.nodes < 1 or not 0 <= policy.retries <= 100 or min(policy.backoff_s, policy.setup_s, policy.hang_s) < 1:
        raise UsageError("nodes, retries or times are out of range", where="nodes", remedy="give numbers above zero")
    if not 0 <= request.spares <= settings.user_spares:
        remedy = f"ask for at most {settings.user_spares}: --spares; the site has it as jobs.user_spares"
        raise UsageError(f"{request.spares} spares are too many", where="spares", remedy=remedy)
    if policy.quarantine:
        remedy = "leave out --quarantine: what a proven fault leads to is the site's (jobs.revalidate)"
        raise UsageError("only operators have hosts quarantined", where="policy.quarantine", remedy=remedy)
    own = [one for one in listed(context) if one.ordered.submitter == user and one.outcome is None]
    if len(own) >= settings.user_runs:
        remedy = f"wait, or end one: clusterctl job stop {own[-1].id}"
        raise ConflictError(f"{user} has {len(own)} open runs", where="jobs.user_runs", remedy=remedy)


def _check_texts(request: JobRunRequest) -> None:
    """Raise `UsageError` for paths that are not absolute, and for texts that are no one line, or too many."""
    for name, path in (("script", request.script), ("folder", request.folder)):
        if not path.startswith("/"):
            raise UsageError("is no absolute path", where=name, remedy="give the path as the nodes have it")
    words = [*request.arguments, *request.options, *(text for pair in request.variables for text in pair)]
    texts = (request.script, request.folder, request.heartbeat, *words, *request.readers)
    if len(words) > MOST_WORDS or any(len(text) > _TEXT or "\0" in text for text in texts):
        raise UsageError(
            "the order is too long", where="arguments", remedy="put them into a file that the script reads"
        )
    if any("\n" in text for text in (request.script, request.folder, request.heartbeat)):
        raise UsageError("holds a line end", where="script", remedy="give paths of one line")


def _part(request: JobRunRequest) -> Mapping[str, Any]:
    """Return the user's part of the manifest. The service reaches no address that a user names: the client has."""
    given = request.part
    services = given.get("services")
    return {
        "code": given.get("code", {}),
        "image": str(given.get("image", "")),
        "configs": given.get("configs", {}),
        "seed": str(given.get("seed", "")),
        "services": dict(services) if isinstance(services, Mapping) else {},
    }


def open_runs(context: SiteContext) -> Sequence[SupervisedRun]:
    """Return the runs of users that are not over."""
    return [one for one in listed(context) if one.ordered.submitter and one.outcome is None]
