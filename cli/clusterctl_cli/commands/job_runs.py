"""`clusterctl job list`, `diff` and `checklist`: supervised runs, compared and questioned."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.render_jobs import run_lines
from clusterctl_cli.text import brief, echo

_MARKS = {True: "ok", False: "look", None: "unknown"}


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Those that are over, too.")
@site_option
@format_option()
def list_(*, everything: bool, folder: Path, as_json: bool) -> None:
    """List the supervised runs, the newest first; without --all those that go on or need a decision."""
    from clusterctl.operations.job_documents import run_json, state_of
    from clusterctl.operations.job_runs import listed
    from clusterctl_cli.context import open_context

    shown = [one for one in listed(open_context(folder)) if everything or state_of(one) in ("running", "asks")]
    if as_json:
        print_document({"runs": [run_json(one) for one in shown]})
        return
    for one in shown:
        for line in run_lines(one):
            echo(line)
    if not shown:
        echo("no supervised run goes on; --all lists those that are over", err=True)


@click.command("diff")
@click.argument("first", metavar="JOBID")
@click.argument("second", metavar="JOBID2")
@site_option
@format_option(*DOCUMENTS)
def diff(*, first: str, second: str, folder: Path, as_json: bool) -> None:
    """Print what differs between the manifests of two jobs of supervised runs: code, variables, nodes, firmware."""
    from clusterctl.operations import job_runs
    from clusterctl.operations.job_documents import differences_json
    from clusterctl_cli.context import open_context

    found = job_runs.diff(open_context(folder), first, second)
    if as_json:
        print_document(differences_json(found))
        return
    for one in found:
        echo(one.field)
        echo(f"  {first:<8} {brief(one.first, 400) or '-'}")
        echo(f"  {second:<8} {brief(one.second, 400) or '-'}")
    if not found:
        echo("the manifests are the same", err=True)


@click.command("checklist")
@click.argument("job", metavar="JOBID")
@site_option
@format_option(*DOCUMENTS)
def checklist(*, job: str, folder: Path, as_json: bool) -> None:
    """Answer eight questions about a job of a supervised run: what changed, which nodes, which services."""
    from clusterctl.operations import job_checklist
    from clusterctl.operations.job_documents import answers_json
    from clusterctl_cli.context import open_context

    found = job_checklist.checklist(open_context(folder), job)
    if as_json:
        print_document(answers_json(found))
        return
    for one in found:
        echo(f"{_MARKS[one.good]:<8} {one.question}")
        echo(f"         {brief(one.answer, 500)}")
