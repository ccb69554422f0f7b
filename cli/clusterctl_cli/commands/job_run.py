"""`clusterctl job run`, `watch` and `stop`: supervised runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.approval import Flags, approve
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import FILE, dry_run_option, duration_seconds, gathered, site_option, yes_option
from clusterctl_cli.remote import refuse_with_server, remote, server_option
from clusterctl_cli.render_jobs import run_lines
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.fleet.job_policy import JobPolicy
    from clusterctl.jobs.supervision import SupervisedRun
    from clusterctl.operations.job_client import JobClient
    from clusterctl.operations.job_inputs import JobRunRequest, ManifestInputs
    from clusterctl.operations.operation import Preview
    from clusterctl_cli.approval import RunLog

_SETUP = "A hang before the first steps: no progress for so long.  [default: 30min]"
_HANG = "A hang later: no progress for so long, at the least.  [default: 5min]"
_OURS = (
    "--nodes", "--nodelist", "--exclude", "--output", "--comment", "--requeue", "--array", "--wait", "--test-only",
    "--wrap", "--open-mode", "--no-requeue", "--reservation",
)  # fmt: skip
_OURS_SHORT = ("-N", "-w", "-x", "-o", "-a", "-W")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `job run`."""

    script: Path
    arguments: tuple[str, ...]
    nodes: int
    spares: int
    logs: Path | None
    sbatch: tuple[str, ...]
    variables: tuple[str, ...]
    readers: tuple[str, ...]
    heartbeat: str
    retries: int
    backoff: float | None
    drain: bool
    quarantine: bool
    setup: float | None
    hang: float | None
    slower: str | None
    code: Path | None
    image: str
    configs: tuple[Path, ...]
    seed: str
    services: tuple[str, ...]
    watch: bool
    yes: bool
    dry_run: bool
    folder: Path
    as_json: bool


@click.command("run")
@click.argument("script", type=FILE)
@click.argument("arguments", nargs=-1)
@click.option("--nodes", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Nodes that the job gets.")
@click.option("--spares", type=click.IntRange(0), default=1, show_default=True, help="Free nodes, kept for restarts.")
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for logs that controller and nodes share.  [default: next to SCRIPT]",
)
@click.option("--sbatch", multiple=True, metavar="OPTION", help="A further option of sbatch: --sbatch=--time=60.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="Set for the job; no secret: all see it.")
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="NAME",
    help="frameworks, mllog, jsonl, regex:PATTERN or tensorboard:PATH.",
)
@click.option("--heartbeat", default="", metavar="PATH", help="A file that the job writes while it makes progress.")
@click.option("--retries", type=click.IntRange(0, 100), default=3, show_default=True, help="Attempts after the first.")
@click.option(
    "--backoff", callback=duration_seconds, metavar="TIME", help="Before the second attempt.  [default: 1min]"
)
@click.option("--drain/--no-drain", default=True, show_default=True, help="Drain hosts whose hardware is to blame.")
@click.option(
    "--quarantine", is_flag=True, help="Quarantine hosts whose hardware is proven to blame: a work order is filed."
)
@click.option("--setup-limit", "setup", callback=duration_seconds, metavar="TIME", help=_SETUP)
@click.option("--hang-after", "hang", callback=duration_seconds, metavar="TIME", help=_HANG)
@click.option("--abort-if-slower-than", "slower", metavar="TEXT", help="Such as '30% for 10 batches'.")
@click.option("--code", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The checkout of the code.")
@click.option("--image", default="", help="The container image with its digest, for the manifest.")
@click.option("--config", "configs", type=FILE, multiple=True, help="A file whose digest the manifest records.")
@click.option("--seed", default="", help="The seed, for the manifest.")
@click.option("--service", "services", multiple=True, metavar="URL", help="An outside service that the job needs.")
@click.option("--watch", is_flag=True, help="Follow the run to its end.")
@yes_option
@dry_run_option
@server_option
@site_option
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(RunOptions)
def run(ctx: click.Context, options: RunOptions) -> None:
    """Submit SCRIPT with sbatch on the healthiest free gold nodes, and keep what it needs to be started again.

    Write -- before ARGUMENTS that begin with a dash. The job runs as the user of this command, and gets variables that
    begin with NCCL_, UCX_, CUDA_, TORCH_, SHARP_, GLOO_ or OMP_. clusterctl job watch follows the run.

    With --server, the web service chooses the nodes and follows the run; this command submits it with sbatch as its own
    user, and each further attempt held.

    Exit code 0: it was submitted, with --watch: it completed; 1: it was refused, or needs a decision; 2: too few nodes
    are idle, or an option is wrong.
    """
    flags = Flags(yes=options.yes, dry_run=options.dry_run, as_json=options.as_json)
    if (client := remote()) is not None:
        _run_remotely(ctx, client, options, flags)
        return
    from clusterctl.operations import job_run
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed, print_event
    from clusterctl_cli.context import open_context

    request = _request(options)
    context = open_context(options.folder)
    preview = job_run.preview(context, request)
    if not approve(preview, flags):
        return
    with observed(context) as (log, cancelled):
        control = Control(preview.digest, print_event, cancelled)
        found = job_run.run(context, request, control)
        if options.watch:
            from clusterctl.operations import job_watch

            found = job_watch.watch(context, job_watch.WatchRequest(run=found.id), control)
    _finish(ctx, _document(found), log, as_json=options.as_json)


def _run_remotely(ctx: click.Context, client: JobClient, options: RunOptions, flags: Flags) -> None:
    from clusterctl_cli.remote_runs import follow, order, request_of

    refuse_with_server(("--quarantine", options.quarantine))
    found = order(client, request_of(options, _common(options), _inputs(options)), flags)
    if found is not None and options.watch:
        found = follow(client, str(found["name"]))
    if found is not None:
        _finish(ctx, found, as_json=options.as_json)


@click.command("watch")
@click.argument("job", metavar="JOBID")
@click.option("--every", callback=duration_seconds, metavar="TIME", help="Between two looks.  [default: 10s]")
@server_option
@site_option
@format_option(*DOCUMENTS)
@click.pass_context
def watch(ctx: click.Context, *, job: str, every: float | None, folder: Path, as_json: bool) -> None:
    """Follow a supervised run to its end: detect crash, hang and slow steps, attribute, and start it again.

    JOBID is the run, or one of its jobs in Slurm. What follows from a failure is the policy that job run was given: a
    restart on the healthiest nodes without the suspects, a drain, or a question. Stopped with Ctrl-C or killed, the
    job runs on, and the same command goes on: nothing is submitted twice.

    With --server, the web service watches, also while no such command runs; this one prints what it reports.

    Exit code 0: it completed; 1: it was stopped, or needs a decision; 2: no such run, or another watcher follows it.
    """
    if (client := remote()) is not None:
        from clusterctl_cli.remote_runs import follow

        refuse_with_server(("--every", every))
        _finish(ctx, follow(client, job), as_json=as_json)
        return
    from clusterctl.operations import job_watch
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed, print_event
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    request = job_watch.WatchRequest(run=job, poll_s=every or job_watch.POLL_S)
    with observed(context) as (log, cancelled):
        found = job_watch.watch(context, request, Control(on_event=print_event, cancelled=cancelled))
    _finish(ctx, _document(found), log, as_json=as_json)


@click.command("stop")
@click.argument("job", metavar="JOBID")
@click.option("--reason", default="stopped by its user", show_default=True, help="Kept in the journal.")
@yes_option
@dry_run_option
@server_option
@site_option
@format_option(*DOCUMENTS)
def stop(*, job: str, reason: str, yes: bool, dry_run: bool, folder: Path, as_json: bool) -> None:
    """Cancel the job of a supervised run, and start no further attempt."""
    flags = Flags(yes=yes, dry_run=dry_run, as_json=as_json)
    if (client := remote()) is not None:
        if approve(_stop_preview(client.run(job)), flags):
            _print(client.stop(job), as_json=as_json)
        return
    from clusterctl.operations import job_watch
    from clusterctl.operations.job_runs import named
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed, print_event
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    found = named(context, job)
    if not approve(_stop_preview(_document(found)), flags):
        return
    with observed(context) as (log, cancelled):
        request = job_watch.StopRequest(run=found.id, reason=reason)
        found = job_watch.stop(context, request, Control(on_event=print_event, cancelled=cancelled))
    _print(_document(found), as_json=as_json)
    log.print_path(0)


def _stop_preview(found: Mapping[str, Any]) -> Preview:
    from clusterctl.operations.operation import Effect, Preview

    if not found:
        raise UsageError("no supervised run has this job", where="JOBID", remedy="its owner ends it with scancel")
    last = found["attempts"][-1] if found["attempts"] else {}
    text = f"cancel job {last['job']}" if last.get("job") and not last.get("state") else "end the run"
    effects = (Effect(node=found["name"], text=text),)
    return Preview(operation="job stop", question=f"Stop {found['name']}?", effects=effects)


def _document(found: SupervisedRun) -> Mapping[str, Any]:
    from clusterctl.operations.job_documents import run_json

    return run_json(found)


def _finish(ctx: click.Context, found: Mapping[str, Any], log: RunLog | None = None, *, as_json: bool) -> None:
    _print(found, as_json=as_json)
    exit_code = 0 if found["state"] in ("running", "completed") else 1
    if log is not None:
        log.print_path(exit_code)
    ctx.exit(exit_code)


def _print(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_document(found)
        return
    for line in run_lines(found):
        echo(line)


def _request(options: RunOptions) -> JobRunRequest:
    from clusterctl.operations.job_inputs import GIT_S, JobRunRequest, user_part
    from clusterctl.ports import Deadline

    part = user_part(_inputs(options), Deadline.after(GIT_S))
    return JobRunRequest(**_common(options), part=part)


def _common(options: RunOptions) -> dict[str, Any]:
    """Return the fields that an order has here and through the service."""
    from clusterctl.jobs.progress import reader

    readers = options.readers or ("frameworks", "mllog", "jsonl")
    for name in readers:
        reader(name)
    script = options.script.resolve()
    return {
        "script": str(script),
        "folder": str((options.logs or script.parent / f"{options.script.name}-logs").resolve()),
        "nodes": options.nodes,
        "spares": options.spares,
        "arguments": options.arguments,
        "options": _sbatch(options.sbatch),
        "variables": _variables(options.variables),
        "readers": readers,
        "heartbeat": options.heartbeat,
        "policy": _policy(options),
    }


def _inputs(options: RunOptions) -> ManifestInputs:
    from clusterctl.operations.job_inputs import ManifestInputs

    return ManifestInputs(
        code=(options.code or options.script.parent).resolve(),
        image=options.image,
        configs=options.configs,
        seed=options.seed,
        services=options.services,
    )


def _policy(options: RunOptions) -> JobPolicy:
    from clusterctl.fleet.job_policy import JobPolicy
    from clusterctl.jobs.watching import parse_slower

    percent, batches = parse_slower(options.slower) if options.slower else (0, 0)
    usual = JobPolicy()
    return JobPolicy(
        retries=options.retries,
        backoff_s=int(options.backoff or usual.backoff_s),
        drain=options.drain,
        quarantine=options.quarantine,
        setup_s=int(options.setup or usual.setup_s),
        hang_s=int(options.hang or usual.hang_s),
        slower_percent=percent,
        slower_batches=batches,
    )


def _sbatch(given: tuple[str, ...]) -> tuple[str, ...]:
    for option in given:
        name = option.partition("=")[0]
        # sbatch takes the beginning of a long option's name for the whole
        ours = any(one.startswith(name) for one in _OURS) if name.startswith("--") else option[:2] in _OURS_SHORT
        if not option.startswith("-") or ours:
            remedy = "write it as --sbatch=--NAME=VALUE; nodes, output and comment are set by clusterctl"
            raise UsageError(f"{option!r} is not taken", where="--sbatch", remedy=remedy)
    return given


def _variables(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the variables of the user's environment that a job needs, and those that are given."""
    from clusterctl.operations.job_inputs import EXPORTED

    found = {name: value for name, value in sorted(os.environ.items()) if name.startswith(EXPORTED)}
    for item in given:
        name, sign, value = item.partition("=")
        if not sign or not name.isidentifier():
            raise UsageError(f"{item!r} is no NAME=VALUE", where="--env", remedy="give it as --env NAME=VALUE")
        found[name] = value
    return tuple(found.items())
