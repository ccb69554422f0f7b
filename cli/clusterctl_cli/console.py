"""The console of all rich output: control characters are visible in each text, from every source."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from clusterctl.fleet.peer_text import visible


class VisibleConsole(Console):
    """Prints colours and moves the cursor for our own tables alone."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def on_broken_pipe(self) -> None:
        """Print nothing more. Rich would end the thread that prints, which may be at work on a node."""
        self.quiet = True
