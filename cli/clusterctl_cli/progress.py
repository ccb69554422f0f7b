"""Progress of a run: a table of nodes on a terminal, one line per event elsewhere. Always on stderr."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from clusterctl.fleet.gate import Advance, Confirm, Hold, Quarantine
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.bootstrap import RunStarted, StepProgress, StepStopped
from clusterctl.operations.operation import Event
from clusterctl.operations.run_log import PROGRESS
from clusterctl_cli.console import VisibleConsole
from clusterctl_cli.output import event_line
from clusterctl_cli.text import NARROW, duration, one_line

GAP = "  "
INDENT = "    "
log = logging.getLogger(PROGRESS)


@dataclass(frozen=True, slots=True)
class _Work:
    """A step that runs on a node since `began` (monotonic seconds), and what its machine last reported."""

    step: Step
    began: float
    message: str = ""


class ProgressView:
    """Shows the events of a run: give `on_event` to the operation. A context manager.

    `table_only`: prints nothing where there is no terminal, as timers like it.
    """

    def __init__(self, *, table_only: bool = False, console: Console | None = None) -> None:
        self._console = console or VisibleConsole(stderr=True, highlight=False)
        self._console.quiet = table_only and not self._is_table
        self._nodes: dict[str, NodeSummary] = {}
        self._steps: Sequence[Step] = ()
        self._expected: Mapping[Step, float] = {}
        self._work: dict[str, _Work] = {}
        self._began = time.monotonic()
        self._live = Live(get_renderable=lambda: self, console=self._console, refresh_per_second=4, transient=True)

    @property
    def _is_table(self) -> bool:
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live.is_started:
            self._live.stop()

    def on_event(self, event: object) -> None:
        """Show one event; called from the run's threads."""
        match event:
            case RunStarted(nodes=nodes, steps=steps, expected_s=expected):
                self._nodes |= {node.name: node for node in nodes}  # a night starts one run after another
                self._steps, self._expected = steps, expected
                if self._is_table and not self._console.quiet:
                    self._live.start()
            case StepProgress():
                self._progress(replace(event, text=one_line(event.text)))
            case StepStopped(step=step, reason=reason):
                text = f"{self._elapsed()}  {step.value} STOPPED for all nodes that have not begun: {reason}"
                self._print(Text(text, style="bold red"))
            case Event():
                self._print(Text(one_line(event_line(event))))
            case _:
                pass

    def _progress(self, event: StepProgress) -> None:
        name, before = event.node.name, self._work.get(event.node.name)
        self._nodes[name] = event.node
        goes_on = before is not None and before.step is event.step
        began = before.began if before is not None and goes_on else time.monotonic()
        if event.decision is None:
            self._work[name] = _Work(event.step, began, event.text)
            if event.text:
                self._print(self._line(event, began), shown=not self._is_table)
            return
        self._work.pop(name, None)
        self._print(self._line(event, began), shown=not self._is_table or not isinstance(event.decision, Advance))

    def _print(self, line: Text, *, shown: bool = True) -> None:
        """Write a line to the run's log and, where it is `shown`, to the console."""
        log.info(line.plain.strip())
        if shown:
            self._console.print(line, soft_wrap=not self._is_table)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:6.1f}s"

    def _line(self, event: StepProgress, began: float) -> Text:
        text, step = Text(f"{self._elapsed()}  {event.node.name}  "), event.step.value
        match event.decision:
            case Advance(to, verdict):
                text.append(to.value, style="yellow" if to is Stage.GOLD else "green")
                text.append("" if verdict.value == "pass" else f" ({verdict.value})")
                text.append(f" after {duration(time.monotonic() - began)}")
            case Confirm(cause):
                text.append(f"{step} once more: {one_line(cause)}", style="magenta")
            case Hold(cause, _):
                text.append(f"held at {step}: {one_line(cause)}", style="magenta")
            case Quarantine(finding):
                text.append(f"QUARANTINED at {step}: {one_line(finding.cause)}", style="bold red")
            case None:
                text.append(f"{step}: {event.text}" if event.text else f"{step} …")
        return text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a line or more per node; counts per step where the terminal is too low for the nodes."""
        nodes = sorted(self._nodes.values(), key=lambda node: node.name)
        lines = list(self._node_lines(nodes, console, options.max_width))
        if len(lines) >= options.size.height:
            lines = list(self._step_lines(nodes))
            for line in lines:
                line.truncate(options.max_width)
        yield from lines

    def _node_lines(self, nodes: Sequence[NodeSummary], console: Console, width: int) -> Iterator[Text]:
        """Yield rows of node, progress, stage and cause. The cause is wrapped; it is below its row where that has too
        little room left, so that no name and no stage is cut. Where even those do not fit, each has lines of its own.
        """
        rows = [(Text(node.name), self._marks(node), self._stage(node), self._note(node)) for node in nodes]
        head = _heading()
        sizes = [max(row[at].cell_len for row in (head, *rows)) for at in range(3)]
        left = sum(sizes) + 3 * len(GAP)
        if left - len(GAP) > width:
            yield from _stacked(rows, console, width)
            return
        indent = left if width - left >= NARROW else len(INDENT)
        for row in (head, *rows):
            start = _padded(row, sizes)
            note = list(row[3].wrap(console, width - indent)) if row[3] else []
            if note and indent == left:
                start.append_text(note.pop(0))
            start.rstrip()
            yield start
            yield from (Text(" " * indent).append_text(line) for line in note)

    def _marks(self, node: NodeSummary) -> Text:
        """Return a mark per step: ✓ passed, ★ gold, ▶ runs, ✗ stopped, · to come."""
        text, work = Text(), self._work.get(node.name)
        for step in self._steps:
            if work is not None and work.step is step:
                text.append("▶", style="cyan")
            elif node.stopped_at is step:
                text.append("✗", style="bold red")
            elif _passed(node, step):
                gold = step is Step.ADMIT
                text.append("★" if gold else "✓", style="yellow" if gold else "green")
            else:
                text.append("·", style="dim")
        return text

    def _stage(self, node: NodeSummary) -> Text:
        """Return the step that runs with its time, the step that stopped the node, or its stage."""
        if work := self._work.get(node.name):
            usual = f" of ~{duration(self._expected[work.step])}" if work.step in self._expected else ""
            return Text(f"{work.step.value} {duration(time.monotonic() - work.began)}{usual}", style="cyan")
        if node.stage is Stage.QUARANTINED:
            return Text(node.stage.value, style="bold red")
        if node.stopped_at is not None:
            return Text(f"held at {node.stopped_at.value}", style="magenta")
        return Text(node.stage.value, style="yellow" if node.stage is Stage.GOLD else "")

    def _note(self, node: NodeSummary) -> Text:
        if work := self._work.get(node.name):
            return Text(work.message, style="cyan")
        return Text(one_line(node.cause), style="red" if node.stage is Stage.QUARANTINED else "magenta")

    def _step_lines(self, nodes: Sequence[NodeSummary]) -> Iterator[Text]:
        """Yield a row per step: how many nodes work, are done and stopped, and how long it takes."""
        working = Counter(work.step for work in self._work.values())
        yield Text(f"{'step':10}{'working':>9}{'done':>9}{'stopped':>9}{'longest':>10}{'expected':>10}", style="bold")
        for step in self._steps:
            done, stopped = sum(_passed(node, step) for node in nodes), sum(node.stopped_at is step for node in nodes)
            began = min((work.began for work in list(self._work.values()) if work.step is step), default=None)
            longest = duration(time.monotonic() - began) if began is not None else ""
            usual = f"~{duration(self._expected[step])}" if step in self._expected else ""
            yield Text(f"{step.value:10}{working[step]:9}{done:9}{stopped:9}{longest:>10}{usual:>10}")


def _heading() -> tuple[Text, ...]:
    return tuple(Text(word, style="bold") for word in ("node", "progress", "stage", ""))


def _stacked(rows: Sequence[tuple[Text, Text, Text, Text]], console: Console, width: int) -> Iterator[Text]:
    """Yield the node's name, and below it progress and stage, and the cause, all wrapped: for very narrow terminals."""
    for name, marks, stage, note in rows:
        yield from name.wrap(console, width)
        for cell in (Text.assemble(marks, GAP, stage), note):
            lines = cell.wrap(console, max(1, width - len(INDENT)))
            yield from (Text(INDENT).append_text(line) for line in lines if line)


def _padded(cells: Sequence[Text], sizes: Sequence[int]) -> Text:
    """Return the first cells of a row in columns of these sizes."""
    text = Text()
    for cell, size in zip(cells, sizes, strict=False):
        text.append_text(cell).append(" " * (size - cell.cell_len) + GAP)
    return text


def _passed(node: NodeSummary, step: Step) -> bool:
    """Return whether the node stands beyond a step; a quarantined one was beyond all that came before its stop."""
    order = list(Step)
    upcoming = node.stopped_at or node.next_step
    return upcoming is None or order.index(step) < order.index(upcoming)
