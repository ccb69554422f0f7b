"""Diagnoses on a terminal, or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from clusterctl.fleet.diagnosis import Diagnosis
from clusterctl_cli.console import VisibleConsole
from clusterctl_cli.formats import print_document
from clusterctl_cli.text import terminal_width, wrapped

MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "broken": ("✗", "bold red"), "not_measured": ("?", "magenta")}


def show(found: Sequence[Diagnosis], *, as_json: bool) -> None:
    """Print `{"checks": [{"name", "verdict", "found", "remedy"}]}`, or one line for each with its remedy below it."""
    if as_json:
        print_document({"checks": [_as_json(item) for item in found]})
        return
    console = VisibleConsole(highlight=False, soft_wrap=True)
    width, columns = max(len(item.name) for item in found), terminal_width()
    for item in found:
        mark, style = MARKS[item.health.value]
        unsure = "not measured: " if mark == "?" else ""
        line = wrapped(f"{mark} {item.name:<{width}}  {unsure}{item.found}", columns, width + 4)
        console.print(Text.assemble((mark, style), line.removeprefix(mark)))
        if item.remedy:
            console.print(Text(wrapped(f"  {'':<{width}}  → {item.remedy}", columns, width + 6), style=style))
    counts = Counter(item.health.value.replace("_", " ") for item in found)
    console.print("\n" + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _as_json(item: Diagnosis) -> dict[str, str]:
    return {"name": item.name, "verdict": item.health.value, "found": item.found, "remedy": item.remedy}
