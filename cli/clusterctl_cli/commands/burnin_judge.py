"""`clusterctl burnin judge DIR`: recorded evidence under today's limits, and against its own fleet; offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.fleet.finding import Finding
    from clusterctl_burnin.fleet_stats import Unjudged
    from clusterctl_burnin.recordings.rejudge import NodeVerdict


@click.command("judge")
@click.argument("recorded", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@site_option
@format_option()
@click.pass_context
def judge(ctx: click.Context, recorded: Path, folder: Path, as_json: bool) -> None:
    """Judge recorded checks again: DIR/NODE.json for each node. Touches no host, and changes nothing in the journal.

    The format of the files: docs/how-to/burnin-judge.md.
    Limits, SKUs and suite are the site's; without a site.yml, the shipped ones. Twenty nodes and more are compared with
    each other, too.

    Exit code 0: every node passed; 1: some node did not; 2: a file could not be read or understood.
    """
    from clusterctl.operations import judging

    result = judging.run(folder, judging.JudgeRequest(recorded=recorded))
    if as_json:
        not_compared = [_unjudged_json(unjudged) for unjudged in result.not_compared]
        print_document({"nodes": map(_node_json, result.nodes), "not_compared": not_compared})
    else:
        _print(result.nodes, result.not_compared)
    ctx.exit(result.exit_code)


def _node_json(node: NodeVerdict) -> dict[str, Any]:
    from clusterctl.operations.json_documents import finding_json

    return {
        "name": node.node,
        "verdict": node.verdict.value,
        "findings": [finding_json(finding) for finding in node.findings],
        "not_judged": list(node.not_judged),
    }


def _unjudged_json(unjudged: Unjudged) -> dict[str, str]:
    return {"metric": unjudged.metric, "population": unjudged.population, "why": unjudged.why}


def _bad_roots(node: NodeVerdict) -> list[Finding]:
    """Return the findings that are no pass and no consequence of another."""
    return [finding for finding in node.findings if finding.verdict.rank > 1 and not finding.root]


def _print(nodes: Sequence[NodeVerdict], unjudged: Sequence[Unjudged]) -> None:
    """Print a line per node, and below it the findings that are no pass and no consequence of another."""
    for node in nodes:
        echo(f"{node.node}: {node.verdict.value}")
        for finding in _bad_roots(node):
            echo(f"  {finding.verdict.value} {finding.check}, {finding.subject}: {finding.cause}")
            echo(f"    {finding.remedy}" if finding.remedy else "")
    for item in unjudged:
        echo(f"not compared: {item.metric} of {item.population}: {item.why}", err=True)
    left_out = sorted({check for node in nodes for check in node.not_judged})
    if left_out:
        echo(f"not judged, since recordings do not keep what they need: {', '.join(left_out)}", err=True)
    good = sum(node.verdict.admits for node in nodes)
    echo(f"{good} of {len(nodes)} nodes pass")
