"""A second front end for clusterctl: plan a site, take its nodes to gold, and explain those that did not arrive.

    python3 examples/operations.py SITE

Like the command line and the web page, it talks to `clusterctl.operations` only. It approves what it previewed: `run`
refuses where the preview has changed since.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Step
from clusterctl.operations import bootstrap
from clusterctl.operations.context import Invocation, open_site
from clusterctl.operations.explanation import explain
from clusterctl.operations.operation import Control


def show(event: Any) -> None:
    """Print each decision of a step; other events are progress within a step."""
    match event:
        case bootstrap.StepProgress(node=node, step=step, decision=decision) if decision is not None:
            print(f"{node.name}: {step.value}: {node.stage.value} {node.cause}".rstrip())
        case bootstrap.StepStopped(step=step, reason=reason):
            print(f"{step.value} stopped: {reason}")


def main(folder: Path) -> int:
    context = open_site(folder, Invocation(command="examples/operations.py"), thorough=True)
    request = bootstrap.RunRequest(steps=tuple(Step))
    preview = bootstrap.preview(context, request)
    for effect in preview.effects:
        print(f"{effect.node}: {effect.text}")
    result = bootstrap.run(context, request, Control(approved=preview.digest, on_event=show))
    for node in result.nodes:
        why = explain(context, context.node(node.name))
        print(f"\n{node.name} is {node.stage.value}: {why.cause or 'nothing keeps it back'}")
        for finding in why.findings:
            print(f"  {finding.check} {finding.subject}: {finding.cause}\n  → {finding.remedy}")
    context.journal.close()
    return result.exit_code


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except ClusterctlError as error:
        sys.exit(str(error))
