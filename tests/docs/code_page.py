"""docs/reference/finding-codes.md, made of the codes of findings."""

from __future__ import annotations

from clusterctl.fleet.finding_code import descriptions
from tests.paths import ROOT

PAGE = ROOT / "docs/reference/finding-codes.md"

_HEAD = """\
# What do the codes of findings mean?

A test writes this page from `src/clusterctl/fleet/finding_code.py`. Root causes, figures of the fleet and decisions depend on the code
of a finding, never on its text.

| code | meaning |
|---|---|
"""


def page() -> str:
    """Return the page of finding codes."""
    rows = [f"| `{code}` | {' '.join(text.replace('|', chr(92) + '|').split())} |\n" for code, text in descriptions()]
    return _HEAD + "".join(rows)
