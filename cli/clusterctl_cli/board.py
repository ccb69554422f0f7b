"""Progress of a run: stages × nodes on a terminal, one line an event elsewhere. Always on stderr."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from clusterctl.fleet.gate import Advance, Confirm, Hold, Quarantine
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeSummary, summarise
from clusterctl.steps.executor.pipeline import Progress

ROWS = 40
"""More nodes than this are shown as counts, with the stopped ones by name."""


class Board:
    """Watches a run. Use as a context manager; give its `watch` to the pipeline."""

    def __init__(self, nodes: Sequence[NodeSummary], steps: Sequence[Step], *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._nodes = {node.name: node for node in nodes}
        self._steps = steps
        self._doing: dict[str, Step] = {}
        self._words: dict[str, str] = {}
        self._began = time.monotonic()
        self._live = Live(get_renderable=self._table, console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.quiet:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def watch(self, progress: Progress) -> None:
        """Called from the pipeline's threads."""
        name = progress.state.name
        self._nodes[name] = summarise(progress.state)
        if progress.decision is None:
            self._doing[name] = progress.step
            self._words[name] = progress.words
            if progress.words and not self._console.is_terminal:
                self._console.print(self._line(progress), soft_wrap=True)
            return
        self._doing.pop(name, None)
        self._words.pop(name, None)
        line = self._line(progress)
        if not self._console.is_terminal:
            self._console.print(line, soft_wrap=True)
        elif not isinstance(progress.decision, Advance):
            self._live.console.print(line, soft_wrap=True)

    def stopped(self, step: Step, why: str) -> None:
        """A step begins with no more nodes."""
        line = Text(f"{time.monotonic() - self._began:6.1f}s  {step.value} STOPPED for all that have not begun: {why}")
        self._console.print(line, style="bold red", soft_wrap=True)

    def _line(self, progress: Progress) -> Text:
        text = Text(f"{time.monotonic() - self._began:6.1f}s  {progress.state.name}  ")
        match progress.decision:
            case Advance(to, verdict):
                text.append(f"{to.value}", style="yellow" if to is Stage.GOLD else "green")
                text.append("" if verdict.value == "pass" else f" ({verdict.value})")
            case Confirm(cause):
                text.append(f"{progress.step.value} once more: {cause}", style="magenta")
            case Hold(cause, _):
                text.append(f"held at {progress.step.value}: {cause}", style="magenta")
            case Quarantine(finding):
                text.append(f"QUARANTINED at {progress.step.value}: {finding.cause}", style="bold red")
            case None:
                text.append(
                    f"{progress.step.value}: {progress.words}" if progress.words else f"{progress.step.value} …"
                )
        return text

    def _table(self) -> Table | Group:
        nodes = list(self._nodes.values())
        return self._grid(nodes) if len(nodes) <= ROWS else self._tally(nodes)

    def _grid(self, nodes: Sequence[NodeSummary]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("node", *(step.value for step in self._steps), ""):
            table.add_column(heading, no_wrap=True)
        for node in sorted(nodes, key=lambda n: n.name):
            table.add_row(node.name, *(self._cell(node, step) for step in self._steps), self._note(node))
        return table

    def _cell(self, node: NodeSummary, step: Step) -> Text:
        if self._doing.get(node.name) is step:
            return Text("▶ " + "·" * (1 + int(time.monotonic() * 2) % 3), style="cyan")
        if node.stopped_at is step:
            return Text("✗", style="bold red")
        if _passed(node, step):
            return Text("★" if step is Step.ADMIT else "✓", style="yellow" if step is Step.ADMIT else "green")
        return Text("·", style="dim")

    def _note(self, node: NodeSummary) -> Text:
        if words := self._words.get(node.name):
            return Text(words[:70], style="cyan")
        return Text(node.cause[:70], style="red" if node.stage is Stage.QUARANTINED else "magenta")

    def _tally(self, nodes: Sequence[NodeSummary]) -> Table:
        doing = Counter(self._doing.values())
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("step", "working", "done", "stopped"):
            table.add_column(heading, justify="left" if heading == "step" else "right")
        for step in self._steps:
            done = sum(_passed(node, step) for node in nodes)
            stopped = sum(node.stopped_at is step for node in nodes)
            table.add_row(step.value, str(doing[step]), str(done), str(stopped))
        return table


def _passed(node: NodeSummary, step: Step) -> bool:
    """True when the node stands beyond `step`; a quarantined one was beyond all that came before its stop."""
    order = list(Step)
    upcoming = node.stopped_at or node.next_step
    return upcoming is None or order.index(step) < order.index(upcoming)
