"""`clusterctl cable counters`: one reading of all error counters, for `cable health` to compare."""

from __future__ import annotations

import shlex

import click

from clusterctl_cli.text import echo


@click.command("counters")
@click.option("--command", default="ibqueryerrors", show_default=True, help="The program to run, with its arguments.")
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
def counters(command: str, deadline: float) -> None:
    """Read the error counters of the whole fabric, and print them below the time: `clusterctl cable counters > before`.

    Nothing is cleared. Exit code 0 also where counters are not zero; 1 where they could not be read.
    """
    from clusterctl.operations.fabric_observation import CountersRequest, read_counters
    from clusterctl.operations.operation import Control

    result = read_counters(CountersRequest(command=tuple(shlex.split(command)), deadline_s=deadline), Control())
    echo(f"# {result.at.isoformat(timespec='seconds')}\n{result.text}", nl=False)
