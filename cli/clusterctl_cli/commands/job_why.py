"""`clusterctl job why [JOBID] [--logs DIR]`: what a failed job failed of, in one page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import gathered, site_option
from clusterctl_cli.remote import refuse_with_server, remote, server_option
from clusterctl_cli.text import brief, echo, terminal_width

if TYPE_CHECKING:
    from clusterctl.operations.job_why import WhyResult

_INDENT = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyOptions:
    """The options of `job why`."""

    job: str | None
    logs: Path | None
    files: tuple[str, ...]
    target: Path | None
    record: bool
    folder: Path
    as_json: bool


@click.command("why")
@click.argument("job", metavar="[JOBID]", required=False)
@click.option(
    "--logs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Recorded logs of one job, instead of JOBID: reaches no host.",
)
@click.option(
    "--files",
    metavar="PATTERN",
    multiple=True,
    help="With JOBID: further files of the job on its nodes, %j is its id; repeatable.",
)
@click.option(
    "--to",
    "target",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="With JOBID: the folder for what is collected.  [default: in the site's state]",
)
@click.option("--record", is_flag=True, help="With --logs: add the answer to the site's journal.")
@server_option
@site_option
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(WhyOptions)
def why(ctx: click.Context, options: WhyOptions) -> None:
    """Attribute the failure of a job to its first error: class, layer, suspects, evidence, what to do.

    With JOBID, a job of Slurm: reads kernel logs, ports, BMCs and the job's own files from all its nodes at once, then
    adds the answer to the journal once the job has failed. With --logs, a folder of recorded logs
    (docs/how-to/job-why.md); nothing is written without --record. Failures that the site's journal holds are evidence
    of recurrence.

    Exit code 0: the cause is proven or likely; 1: it is unknown; 2: no such job, no logs, or a wrong job.json.
    """
    document = _answer(options)
    if options.as_json:
        print_document(document)
    else:
        _print(document)
    ctx.exit(0 if document["cause"]["certainty"] != "unknown" else 1)


def _answer(options: WhyOptions) -> Mapping[str, Any]:
    if options.logs is None and (client := remote()) is not None:
        refuse_with_server(("--files", options.files), ("--to", options.target), ("--record", options.record))
        return client.why(_job(options))
    from clusterctl.operations.job_documents import why_json

    return why_json(_of_job(options) if options.logs is None else _of_logs(options, options.logs))


def _job(options: WhyOptions) -> str:
    if options.job is None:
        raise UsageError("no job is named", where="JOBID", remedy="give the job's id, or recorded logs: --logs DIR")
    return options.job


def _of_job(options: WhyOptions) -> WhyResult:
    from clusterctl.operations import job_why
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed, print_event
    from clusterctl_cli.context import open_context

    job = _job(options)
    if options.record:
        raise UsageError("the answer on a job is always added", where="--record", remedy="leave out --record")
    context = open_context(options.folder)
    request = job_why.JobWhyRequest(job=job, target=options.target, patterns=options.files)
    with observed(context) as (log, cancelled):
        result = job_why.run_job(context, request, Control(cancelled=cancelled, on_event=print_event))
    log.print_path(result.exit_code)
    return result


def _of_logs(options: WhyOptions, logs: Path) -> WhyResult:
    from clusterctl.operations import job_why
    from clusterctl_cli.context import open_context

    for name, given in (("JOBID", options.job), ("--files", options.files), ("--to", options.target)):
        if given:
            raise UsageError(f"{name} and --logs exclude each other", where=name, remedy="leave out one of them")
    with_site = options.record or (options.folder / "site.yml").exists()
    context = open_context(options.folder) if with_site else None
    return job_why.run(job_why.WhyRequest(logs=logs, record=options.record), context)


def _print(found: Mapping[str, Any]) -> None:
    cause = found["cause"]
    name = f"job {found['job']}: " if found["job"] else ""
    seen = "no failure is seen" if cause["rule"] == "running" else cause["failure"]
    echo(f"{name}{seen}, {cause['layer']}, {cause['certainty']}")
    if cause["cause"]:
        _field("cause", cause["cause"])
    if cause["suspects"]:
        _field("suspects", "; ".join(_suspect(suspect) for suspect in cause["suspects"][:8]))
    if cause["at"]:
        _field("first error" if cause["line"] else "at", f"{datetime.fromisoformat(cause['at']):%Y-%m-%d %H:%M:%S} UTC")
    if cause["line"]:
        _field("line", brief(cause["line"], 300))
        _field("where", cause["place"])
    for because in cause["because"]:
        _field("because", because)
    if found["last_step"] is not None:
        _field("last step", str(found["last_step"]))
    _field("persistence", cause["persistence"])
    _field("action", cause["action"])
    if cause["remedy"]:
        _field("do", cause["remedy"])
    _print_rest(found)


def _print_rest(found: Mapping[str, Any]) -> None:
    """Print what follows from the cause, what else it may be, and what was not read."""
    if found["consequences"]:
        listed = ", ".join(f"{rule} ({times} lines)" for rule, times in found["consequences"].items())
        _field("follows", listed)
    for other in found["others"]:
        hosts = ", ".join(sorted({suspect["host"] for suspect in other["suspects"]} - {""})[:3])
        _field("or", f"{other['layer']}, {other['certainty']}: {other['cause']}{f' ({hosts})' if hosts else ''}")
    for missing in found["unmeasured"][:10]:
        _field("not read", missing)
    _field("rule", f"{found['cause']['rule']} (docs/reference/attribution.md)")
    if found["recorded"]:
        _field("recorded", f"job {found['job']} in the journal")
    if found["folder"]:
        _field("logs", found["folder"])
    if found.get("hidden"):
        echo("texts are left out: it is another user's job", err=True)
    if found["lines"] is not None:
        lines, hosts, size = found["lines"], found["hosts"], found["bytes_read"]
        known = "1 line that a rule knows" if lines == 1 else f"{lines} lines that a rule knows"
        of_hosts = f" of {hosts} host{'s' if hosts > 1 else ''}" if hosts else ""
        read = f"{size >> 20} MiB" if size >> 20 else f"{-(-size // 1024)} KiB"
        echo(f"{known}, in {read} of logs{of_hosts}", err=True)


def _suspect(suspect: Mapping[str, Any]) -> str:
    rank = suspect["rank"]
    parts = [suspect["host"] or "an unknown host", suspect["part"], f"rank {rank}" if rank is not None else ""]
    return ", ".join(part for part in parts if part)


def _field(name: str, value: str) -> None:
    head = f"  {name:<{_INDENT - 2}}"
    width = terminal_width()
    lines = [value] if width is None else textwrap.wrap(value, max(20, width - _INDENT)) or [""]
    for number, line in enumerate(lines):
        echo((head if number == 0 else " " * _INDENT) + line)
