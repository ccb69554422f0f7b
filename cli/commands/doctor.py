"""`clusterctl doctor`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.cli.options import json_option, site_option, verbose_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusterctl.edges.site import Site
    from clusterctl.fleet.diagnosis import Diagnosis
    from clusterctl.fleet.errors import ClusterctlError

MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "broken": ("✗", "bold red"), "not_measured": ("?", "magenta")}


@click.command()
@site_option
@click.option("--lab", "for_lab", is_flag=True, help="Also what a rehearsal lab needs of this machine.")
@json_option
@verbose_option
def doctor(folder: Path, for_lab: bool, as_json: bool) -> int:
    """Say what is missing or wrong on this controller, and how to mend it. Changes nothing; needs no site.

    Exit code 3 when something is broken.
    """
    from clusterctl.cli.office import CLOCK
    from clusterctl.cli.trust import diagnosis, known_bmcs
    from clusterctl.edges.doctor import examine
    from clusterctl.fleet.diagnosis import Health
    from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError
    from clusterctl.lab.doctor import checks as lab_checks

    site = _site(folder)
    more = list(lab_checks()) if for_lab else []
    if isinstance(site, ClusterctlError):
        found = examine(site, None, CLOCK, more)
    else:
        found = examine(
            site, replace(known_bmcs(site), learn=False), CLOCK, [("trust", partial(diagnosis, site)), *more]
        )
    if as_json:
        click.echo(json.dumps({"checks": [_as_json(item) for item in found]}))
    else:
        _print(found)
    ill = any(item.health is Health.BROKEN for item in found)
    return EnvironmentBrokenError.exit_code if ill else 0


def _site(folder: Path) -> Site | ClusterctlError:
    """The site, or why there is none: only where nobody named one, that is fine."""
    from clusterctl.edges.doctor import NoSiteError
    from clusterctl.edges.site import load_site
    from clusterctl.fleet.errors import ClusterctlError

    if folder == Path() and not (folder / "site.yml").exists():
        return NoSiteError("none here", remedy="name one with --site DIR, and the rest is looked at as well")
    try:
        return load_site(folder)
    except ClusterctlError as error:
        return error


def _as_json(item: Diagnosis) -> dict[str, str]:
    return {"name": item.name, "verdict": item.health.value, "found": item.found, "remedy": item.remedy}


def _print(found: Sequence[Diagnosis]) -> None:
    """A line each, and below it what to do."""
    from collections import Counter

    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(item.name) for item in found)
    for item in found:
        mark, style = MARKS[item.health.value]
        unsure = "not measured: " if mark == "?" else ""
        console.print(Text.assemble((mark, style), f" {item.name:<{width}}  {unsure}{item.found}"))
        if item.remedy:
            console.print(Text(f"  {'':<{width}}  → {item.remedy}", style=style))
    counts = Counter(item.health.value.replace("_", " ") for item in found)
    console.print("\n" + ", ".join(f"{count} {name}" for name, count in counts.items()))
