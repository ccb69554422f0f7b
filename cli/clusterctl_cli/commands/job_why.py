"""`clusterctl job why --logs DIR`: what a failed job failed of, in one page."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.text import brief, echo, terminal_width

if TYPE_CHECKING:
    from clusterctl.jobs.attribution import Candidate, Suspect
    from clusterctl.operations.job_why import WhyResult

_INDENT = 15


@click.command("why")
@click.option(
    "--logs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="A folder with the logs of one job.",
)
@click.option("--record", is_flag=True, help="Add the answer to the site's journal: later answers are held against it.")
@site_option
@format_option(*DOCUMENTS)
@click.pass_context
def why(ctx: click.Context, *, logs: Path, record: bool, folder: Path, as_json: bool) -> None:
    """Attribute the failure of a job to its first error: class, layer, suspects, evidence, what to do.

    The layout of the folder: docs/how-to/job-why.md. Reaches no host. Where a site is given, failures that its journal
    holds are evidence of recurrence; nothing is written without --record.

    Exit code 0: the cause is proven or likely; 1: it is unknown; 2: the folder holds no logs, or job.json is wrong.
    """
    from clusterctl.operations import job_why
    from clusterctl_cli.context import open_context

    context = open_context(folder) if record or (folder / "site.yml").exists() else None
    result = job_why.run(job_why.WhyRequest(logs=logs, record=record), context)
    if as_json:
        print_document(_json(result))
    else:
        _print(result)
    ctx.exit(result.exit_code)


def _json(result: WhyResult) -> dict[str, Any]:
    found = result.attribution
    return {
        "job": found.job,
        "cause": _candidate_json(found.cause),
        "others": [_candidate_json(one) for one in found.others],
        "consequences": dict(found.consequences),
        "unmeasured": list(found.unmeasured),
        "last_step": result.progress.iteration if result.progress else None,
        "hosts": result.hosts,
        "lines": result.lines,
        "bytes_read": result.bytes_read,
        "earlier_failures": result.earlier,
        "recorded": result.recorded,
    }


def _candidate_json(one: Candidate) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "failure": one.failure.value,
        "layer": one.layer.value,
        "certainty": one.certainty.value,
        "persistence": one.persistence.value,
        "cause": one.cause,
        "action": one.action.value,
        "remedy": one.remedy,
        "error": one.error,
        "at": one.at.isoformat() if one.at else None,
        "step": one.iteration,
        "suspects": [_suspect_json(suspect) for suspect in one.suspects],
        "because": list(one.because),
        "line": one.first.text if one.first else "",
        "place": one.first.place if one.first else "",
    }


def _suspect_json(suspect: Suspect) -> dict[str, Any]:
    return {"host": suspect.host, "part": suspect.part, "rank": suspect.rank}


def _print(result: WhyResult) -> None:
    found, cause = result.attribution, result.attribution.cause
    name = f"job {found.job}: " if found.job else ""
    echo(f"{name}{cause.failure.value}, {cause.layer.value}, {cause.certainty.value}")
    _field("cause", cause.cause)
    if cause.suspects:
        _field("suspects", "; ".join(_suspect(suspect) for suspect in cause.suspects[:8]))
    if cause.at is not None:
        _field("first error", f"{cause.at:%Y-%m-%d %H:%M:%S} UTC")
    if cause.first is not None:
        _field("line", brief(cause.first.text, 300))
        _field("where", cause.first.place)
    for because in cause.because:
        _field("because", because)
    if result.progress is not None:
        _field("last step", str(result.progress.iteration))
    _field("persistence", cause.persistence.value)
    _field("action", cause.action.value)
    _field("do", cause.remedy)
    if found.consequences:
        listed = ", ".join(f"{rule} ({times} lines)" for rule, times in found.consequences.items())
        _field("follows", listed)
    for other in found.others:
        hosts = ", ".join(sorted({suspect.host for suspect in other.suspects} - {""})[:3])
        _field("or", f"{other.layer.value}, {other.certainty.value}: {other.cause}{f' ({hosts})' if hosts else ''}")
    for missing in found.unmeasured[:10]:
        _field("not read", missing)
    _field("rule", f"{cause.rule} (docs/reference/attribution.md)")
    if result.recorded:
        _field("recorded", f"job {found.job} in the journal")
    echo(f"{result.lines} lines that a rule knows, of {result.hosts} hosts, {result.bytes_read >> 20} MiB", err=True)


def _suspect(suspect: Suspect) -> str:
    parts = [
        suspect.host or "an unknown host",
        suspect.part,
        f"rank {suspect.rank}" if suspect.rank is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _field(name: str, value: str) -> None:
    head = f"  {name:<{_INDENT - 2}}"
    width = terminal_width()
    lines = [value] if width is None else textwrap.wrap(value, max(20, width - _INDENT)) or [""]
    for number, line in enumerate(lines):
        echo((head if number == 0 else " " * _INDENT) + line)
