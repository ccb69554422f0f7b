"""docs/reference/checks.md lists every check as its own file describes it."""

from __future__ import annotations

import inspect
import itertools
import os
import shlex
import sys
from collections.abc import Iterator

from clusterctl_burnin.check import EVERY_SUITE, Check
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.registry import CHECKS
from tests.paths import ROOT, needs_checkout

PAGE = ROOT / "docs/reference/checks.md"
HEAD = """# Which checks are there?

Each check is one file of `burnin/clusterctl_burnin/checks/`. A test writes this page from them (`CLUSTERCTL_WRITE_PAGES=1`).
[How to add a check](../how-to/add-a-check.md) explains the words. A limit with a default may be changed in the site's
limits file; a limit without one depends on the hardware and stands in every limits file.
"""
LONG = 120
"""Longer commands are scripts; the file of the check shows them."""


def page() -> str:
    areas = itertools.groupby(CHECKS.values(), key=lambda check: check.area)
    found: dict[str, list[Check]] = {}
    for area, checks in areas:
        found.setdefault(area.value, []).extend(checks)
    lines = [HEAD]
    for area, members in found.items():
        lines += [f"## {area[0].upper()}{area[1:]}", "", *(line for check in members for line in _check(check))]
    return "\n".join(lines)


def _check(check: Check) -> Iterator[str]:
    described = inspect.cleandoc(sys.modules[check.judge.__module__].__doc__ or "").partition(": ")[2]
    yield from (f"### {check.name}", "", f"{described[0].upper()}{described[1:]}", "")
    commands = [shlex.join(probe.argv) for probe in check.probes]
    yield from (
        f"- runs `{command if len(command) <= LONG else command[:LONG] + ' …'}`" for command in map(_flat, commands)
    )
    yield from (f"- limit {_limit(key)}" for key in check.limits)
    if check.causes:
        yield f"- follows from {', '.join(f'`{cause.check}`' for cause in check.causes)}"
    if check.metrics:
        yield f"- compared over the fleet: {', '.join(f'`{metric.name}`' for metric in check.metrics)}"
    if check.suites != EVERY_SUITE:
        yield f"- required by {', '.join(sorted(check.suites)) or 'no shipped suite'}"
    if check.idle_only:
        yield "- needs a node without jobs: `clusterctl check` makes it with `--idle` only"
    yield ""


def _flat(command: str) -> str:
    return " ".join(command.split())


def _limit(key: LimitKey) -> str:
    if key.default is None:
        return f"`{key.name}` ({key.unit}), by the hardware's limits file"
    return f"`{key.name}`: {key.default:g} {key.unit} ({key.source})"


@needs_checkout
def test_the_page_is_what_the_checks_declare() -> None:
    """The page is written where CLUSTERCTL_WRITE_PAGES is set; it is never edited by hand."""
    text = page()
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def test_every_check_describes_itself() -> None:
    """The first line of its file is its name and one sentence."""
    for check in CHECKS.values():
        assert (sys.modules[check.judge.__module__].__doc__ or "").startswith(f"{check.name}: ")
