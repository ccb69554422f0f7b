"""`clusterctl check NODE…`: the checks without loads on nodes in service; changes and records nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import nodes_argument, site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.check import CheckedNode, CheckResult


@click.command("check")
@nodes_argument
@click.option("--idle", is_flag=True, help="No job runs on them: make the checks that need an idle node, too.")
@site_option
@format_option()
def check(folder: Path, *, idle: bool, as_json: bool, **options: Any) -> int:
    """Run the checks of the site's suite, without loads, on nodes of any stage. Changes and records nothing.

    Checks that a job on the node would fail, or that would disturb a job, need --idle.

    Exit code 0: no node failed; 1: some did; 4: none failed, but something could not be measured.
    """
    from clusterctl.operations import check as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder)
    request = operation.CheckRequest(nodes=select_nodes(context, options), idle=idle)
    with observed(context) as (log, cancelled):
        result = operation.run(context, request, Control(cancelled=cancelled))
    if as_json:
        print_document({"nodes": map(_node_json, result.nodes), "left_out": list(result.left_out)})
    else:
        _print(result)
    log.print_path(result.exit_code)
    return result.exit_code


def _node_json(node: CheckedNode) -> dict[str, Any]:
    from clusterctl.operations.json_documents import finding_json

    return {
        "name": node.node,
        "stage": node.stage.value,
        "verdict": node.verdict.value,
        "findings": [finding_json(finding) for finding in node.findings],
    }


def _print(result: CheckResult) -> None:
    """Print one line per node, and below it what is no pass and no consequence of another finding."""
    from clusterctl.fleet.finding import Verdict

    for node in result.nodes:
        echo(f"{node.node} ({node.stage.value}): {node.verdict.value}")
        for finding in node.findings:
            if finding.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE) or finding.root:
                continue
            echo(f"  {finding.verdict.value} {finding.check}, {finding.subject}: {finding.cause}")
            if finding.figures:
                echo(f"    {finding.figures}")
            if finding.remedy:
                echo(f"    {finding.remedy}")
    if result.left_out:
        echo(f"not checked without --idle: {', '.join(result.left_out)}", err=True)
