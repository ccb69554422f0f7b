"""A verified cabling on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from clusterctl.cabling.explain.explanation import CablingExplanation
from clusterctl.operations.cabling import VerifyResult
from clusterctl_cli.console import VisibleConsole


def print_verification(verification: VerifyResult) -> None:
    console = wide_console()
    print_by_rack(console, verification.explanations)
    planned = "planned cables are right" if verification.inferred is None else "cables are as the rules require"
    right = f"{verification.right} of {verification.planned} {planned}, {verification.observed} observed"
    count, moves = len(verification.explanations), verification.moves
    work = f"{count} finding{'s' if count != 1 else ''}, {moves} move{'s' if moves != 1 else ''}"
    if verification.chassis:
        work += f" on {verification.chassis} device{'s' if verification.chassis != 1 else ''}"
    print_warnings(console, verification.warnings)
    good = "all as planned" if verification.inferred is None else "no finding"
    for limit in verification.inferred.limits if verification.inferred else ():
        console.print(Text(f"no plan: {limit}", style="magenta"))
    console.print(Text(f"{right}: {work if count else good}", style="red" if count else "green"))


def print_warnings(console: Console, warnings: tuple[str, ...]) -> None:
    """Print that the reading may lack devices, where the tool that read the fabric warned."""
    if warnings:
        text = f"the tool that read the fabric printed {len(warnings)} warnings, so devices may be missing in it: "
        console.print(Text(text + warnings[0], style="magenta"))


def print_by_rack(console: Console, explanations: Iterable[CablingExplanation]) -> None:
    """Print explanations by rack, so that one walk repairs all of a rack."""
    by_rack: dict[str, list[CablingExplanation]] = {}
    for explanation in explanations:
        by_rack.setdefault(explanation.rack, []).append(explanation)
    for rack, here in sorted(by_rack.items(), key=lambda item: (not item[0], item[0])):
        console.print(Text(f"rack {rack}" if rack else "rack unknown", style="bold"))
        for explanation in here:
            console.print(Text(f"  {explanation.kind.value.replace('_', ' ')}: {explanation.cause}"))
            console.print(Text(f"    → {explanation.action}", style="yellow"))


def wide_console() -> Console:
    """Return a console that keeps long lines whole, so that they can be searched and copied."""
    return VisibleConsole(highlight=False, soft_wrap=True)
