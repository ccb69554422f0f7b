"""Operators' decisions as text: holds, waivers, and their effect on a node. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clusterctl.fleet.decisions.waiver import Waiver
from clusterctl.fleet.durations import utc_text
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl_cli.text import wrapped

if TYPE_CHECKING:
    from rich.text import Text


def waiver_words(waiver: Waiver, now: datetime) -> str:
    """Return `gpu_ecc of gpu 3 waived by alice until …: …`, or that it has ended."""
    if waiver.active(now):
        return f"{waiver.what} {waiver}"
    return f"{waiver.what}: the waiver of {waiver.by} ended {utc_text(waiver.until)} ({waiver.reason})"


def waivers_brief(node: NodeSummary, now: datetime) -> str:
    """Return the waivers for a line of a list; empty where there is none."""
    return "; ".join(waiver_words(waiver, now) for waiver in node.waivers)


def people_text(node: NodeState, now: datetime, width: int | None) -> Text:
    """Return one line for each decision about the node that counts now, or did until it ended."""
    from rich.text import Text

    text = Text()
    if node.hold is not None:
        words = str(node.hold) if node.held(now) else f"the hold of {node.hold.by} has ended ({node.hold.reason})"
        line = wrapped(f"{words[0].upper()}{words[1:]}.", width)
        text.append(f"{line}\n", style="bold" if node.held(now) else "dim")
    for waiver in node.waivers:
        text.append(
            f"{wrapped(f'{waiver_words(waiver, now)}.', width)}\n", style="yellow" if waiver.active(now) else "magenta"
        )
    return text
