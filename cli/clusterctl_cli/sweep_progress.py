"""Progress of a sweep, on stderr: a bar on a terminal, a line elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from clusterctl.operations.sweep import SweepProgress as Swept
from clusterctl_cli.console import VisibleConsole


class SweepView:
    """Shows the progress of a sweep. A context manager."""

    def __init__(self) -> None:
        console = VisibleConsole(stderr=True, highlight=False)
        self._reported = False
        self._console = console
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._asked = self._bars.add_task("addresses asked", total=None)
        self._visited = self._bars.add_task("BMCs read", total=None)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bars.stop()

    def on_event(self, event: object) -> None:
        """Show how many addresses were asked and how many BMCs were read; called from the sweep's threads."""
        if not isinstance(event, Swept):
            return
        self._bars.update(self._asked, completed=event.asked, total=event.hosts)
        self._bars.update(self._visited, completed=event.read, total=event.open)
        if event.asked == event.hosts and not self._reported and not self._console.is_terminal:
            self._reported = True
            self._console.print(f"{event.open} of {event.hosts} addresses answer; reading their BMCs", soft_wrap=True)
