"""`clusterctl cable counters`: one reading of all error counters, for `cable health` to compare."""

from __future__ import annotations

import click


@click.command("counters", short_help="Print one reading of all error counters.")
@click.option("--command", default="ibqueryerrors", show_default=True, help="The program to run, with its arguments.")
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
def counters(command: str, deadline: float) -> None:
    """Read the error counters of the whole fabric, and print them below the time: `clusterctl cable counters > before`.

    Nothing is cleared. Exit code 0 also where counters are not zero; 1 where they could not be read.
    """
    import shlex

    from clusterctl.edges.clock import CLOCK
    from clusterctl.edges.infiniband import CounterReader
    from clusterctl.fleet.finding import Origin
    from clusterctl.ports import Deadline

    reader = CounterReader(CLOCK, Origin.REAL, tuple(shlex.split(command)))
    began = CLOCK.now()
    found = reader.ibqueryerrors(Deadline.after(deadline))
    click.echo(f"# {began.isoformat(timespec='seconds')}\n{found.value}", nl=False)
