"""`clusterctl job list`, `diff` and `checklist`: supervised runs, compared and questioned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.remote import remote, server_option
from clusterctl_cli.render_jobs import run_lines
from clusterctl_cli.text import brief, echo

_MARKS = {True: "ok", False: "look", None: "unknown"}


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Those that are over, too.")
@server_option
@site_option
@format_option()
def list_(*, everything: bool, folder: Path, as_json: bool) -> None:
    """List the supervised runs, the newest first; without --all those that go on or need a decision."""
    client = remote()
    found = client.runs() if client is not None else _listed(folder)
    shown = [one for one in found if everything or one["state"] in ("running", "asks")]
    if as_json:
        print_document({"runs": shown})
        return
    for one in shown:
        for line in run_lines(one):
            echo(line)
    if not shown:
        echo("no supervised run goes on; --all lists those that are over", err=True)


def _listed(folder: Path) -> list[Mapping[str, Any]]:
    from clusterctl.operations.job_documents import run_json
    from clusterctl.operations.job_runs import listed
    from clusterctl_cli.context import open_context

    return [run_json(one) for one in listed(open_context(folder))]


@click.command("diff")
@click.argument("first", metavar="JOBID")
@click.argument("second", metavar="JOBID2")
@server_option
@site_option
@format_option(*DOCUMENTS)
def diff(*, first: str, second: str, folder: Path, as_json: bool) -> None:
    """Print what differs between the manifests of two jobs of supervised runs: code, variables, nodes, firmware."""
    client = remote()
    document = client.diff(first, second) if client is not None else _difference(folder, first, second)
    if as_json:
        print_document(document)
        return
    for one in document["differences"]:
        echo(one["field"])
        echo(f"  {first:<8} {brief(one['first'], 400) or '-'}")
        echo(f"  {second:<8} {brief(one['second'], 400) or '-'}")
    if not document["differences"]:
        echo("the manifests are the same", err=True)


def _difference(folder: Path, first: str, second: str) -> Mapping[str, Any]:
    from clusterctl.operations import job_runs
    from clusterctl.operations.job_documents import differences_json
    from clusterctl_cli.context import open_context

    return differences_json(job_runs.diff(open_context(folder), first, second))


@click.command("checklist")
@click.argument("job", metavar="JOBID")
@server_option
@site_option
@format_option(*DOCUMENTS)
def checklist(*, job: str, folder: Path, as_json: bool) -> None:
    """Answer eight questions about a job of a supervised run: what changed, which nodes, which services."""
    client = remote()
    document = client.checklist(job) if client is not None else _answers(folder, job)
    if as_json:
        print_document(document)
        return
    for one in document["answers"]:
        echo(f"{_MARKS.get(one['good'], 'unknown'):<8} {one['question']}")
        echo(f"         {brief(one['answer'], 500)}")


def _answers(folder: Path, job: str) -> Mapping[str, Any]:
    from clusterctl.operations import job_checklist
    from clusterctl.operations.job_documents import answers_json
    from clusterctl_cli.context import open_context

    return answers_json(job_checklist.checklist(open_context(folder), job))
