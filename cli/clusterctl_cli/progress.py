"""Progress of a run: steps × nodes on a terminal, one line per event elsewhere. Always on stderr."""

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
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.bootstrap import RunStarted, StepProgress, StepStopped
from clusterctl.operations.operation import Event
from clusterctl_cli.output import event_line

ROWS = 40
"""More nodes than this are shown as counts, with the stopped ones by name."""


class ProgressView:
    """Shows the events of a run: give `on_event` to the operation. A context manager."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._nodes: dict[str, NodeSummary] = {}
        self._steps: Sequence[Step] = ()
        self._working: dict[str, Step] = {}
        self._texts: dict[str, str] = {}
        self._began = time.monotonic()
        self._live = Live(get_renderable=self._table, console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def on_event(self, event: object) -> None:
        """Show one event; called from the run's threads."""
        match event:
            case RunStarted(nodes=nodes, steps=steps):
                self._nodes = {node.name: node for node in nodes}
                self._steps = steps
                if self._console.is_terminal and not self._console.quiet:
                    self._live.start()
            case StepProgress():
                self._progress(event)
            case StepStopped(step=step, reason=reason):
                text = f"{self._elapsed()}  {step.value} STOPPED for all nodes that have not begun: {reason}"
                self._console.print(Text(text), style="bold red", soft_wrap=True)
            case Event():
                self._console.print(Text(event_line(event)), soft_wrap=True)
            case _:
                pass

    def _progress(self, event: StepProgress) -> None:
        name = event.node.name
        self._nodes[name] = event.node
        if event.decision is None:
            self._working[name] = event.step
            self._texts[name] = event.text
            if event.text and not self._console.is_terminal:
                self._console.print(self._line(event), soft_wrap=True)
            return
        self._working.pop(name, None)
        self._texts.pop(name, None)
        if not self._console.is_terminal:
            self._console.print(self._line(event), soft_wrap=True)
        elif not isinstance(event.decision, Advance):
            self._live.console.print(self._line(event), soft_wrap=True)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:6.1f}s"

    def _line(self, event: StepProgress) -> Text:
        text = Text(f"{self._elapsed()}  {event.node.name}  ")
        match event.decision:
            case Advance(to, verdict):
                text.append(f"{to.value}", style="yellow" if to is Stage.GOLD else "green")
                text.append("" if verdict.value == "pass" else f" ({verdict.value})")
            case Confirm(cause):
                text.append(f"{event.step.value} once more: {cause}", style="magenta")
            case Hold(cause, _):
                text.append(f"held at {event.step.value}: {cause}", style="magenta")
            case Quarantine(finding):
                text.append(f"QUARANTINED at {event.step.value}: {finding.cause}", style="bold red")
            case None:
                text.append(f"{event.step.value}: {event.text}" if event.text else f"{event.step.value} …")
        return text

    def _table(self) -> Table | Group:
        nodes = list(self._nodes.values())
        return self._grid(nodes) if len(nodes) <= ROWS else self._tally(nodes)

    def _grid(self, nodes: Sequence[NodeSummary]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("node", *(verb.value for verb in self._steps)):
            table.add_column(heading, no_wrap=True)
        table.add_column("", overflow="fold")  # causes stay whole, wrapped
        for node in sorted(nodes, key=lambda n: n.name):
            table.add_row(node.name, *(self._cell(node, verb) for verb in self._steps), self._note(node))
        return table

    def _cell(self, node: NodeSummary, verb: Step) -> Text:
        if self._working.get(node.name) is verb:
            return Text("▶ " + "·" * (1 + int(time.monotonic() * 2) % 3), style="cyan")
        if node.stopped_at is verb:
            return Text("✗", style="bold red")
        if _passed(node, verb):
            return Text("★" if verb is Step.ADMIT else "✓", style="yellow" if verb is Step.ADMIT else "green")
        return Text("·", style="dim")

    def _note(self, node: NodeSummary) -> Text:
        if words := self._texts.get(node.name):
            return Text(words, style="cyan")
        return Text(node.cause, style="red" if node.stage is Stage.QUARANTINED else "magenta")

    def _tally(self, nodes: Sequence[NodeSummary]) -> Table:
        working = Counter(self._working.values())
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("step", "working", "done", "stopped"):
            table.add_column(heading, justify="left" if heading == "step" else "right")
        for verb in self._steps:
            done = sum(_passed(node, verb) for node in nodes)
            stopped = sum(node.stopped_at is verb for node in nodes)
            table.add_row(verb.value, str(working[verb]), str(done), str(stopped))
        return table


def _passed(node: NodeSummary, verb: Step) -> bool:
    """True when the node stands beyond `verb`; a quarantined one was beyond all that came before its stop."""
    order = list(Step)
    upcoming = node.stopped_at or node.next_step
    return upcoming is None or order.index(verb) < order.index(upcoming)
