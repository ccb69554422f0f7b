"""Progress of a sweep, on stderr: a bar on a terminal, a line elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from clusterctl.edges.redfish.sweep import Progress as Swept


class SweepBoard:
    """Watches a sweep of `hosts` addresses; a context manager."""

    def __init__(self, hosts: int) -> None:
        console = Console(stderr=True, highlight=False)
        self._hosts = hosts
        self._told = False
        self._console = console
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._asked = self._bars.add_task("addresses asked", total=hosts)
        self._visited = self._bars.add_task("BMCs looked at", total=None)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bars.stop()

    def watch(self, swept: Swept) -> None:
        """Called for each address that was asked, and now and then until all that answer were looked at."""
        self._bars.update(self._asked, completed=swept.scanned)
        self._bars.update(self._visited, completed=swept.probed, total=swept.open)
        if swept.scanned == self._hosts and not self._told and not self._console.is_terminal:
            self._told = True
            self._console.print(f"{swept.open} of {self._hosts} addresses answer; looking who they are", soft_wrap=True)
