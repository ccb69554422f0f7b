"""What the tests of the documentation read: pages, their headings, links and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

DOCS = ROOT / "docs"
PAGES = tuple(sorted(DOCS.rglob("*.md"))) if DOCS.is_dir() else ()
OTHERS = tuple(
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "lab/README.md", *ROOT.glob("roles/*/README.md"))
    if page.is_file()
)
with_docs = pytest.mark.skipif(not PAGES, reason="an installed wheel has no docs")

_FENCE = re.compile(r"^\s*(```|~~~)")


def named(page: Path) -> str:
    """Return the path of a page from the checkout, which names it in test identifiers."""
    return str(page.relative_to(ROOT))


def lines(page: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield each line: its number, its text, and whether it is code (fenced, or indented by four after a blank line)."""
    fenced = indented = False
    before = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if _FENCE.match(line):
            fenced = not fenced
            before = line
            continue
        block = line.startswith("    ") and not line.lstrip().startswith(("- ", "* "))
        indented = block and (indented or not before.strip())
        yield number, line, fenced or indented
        before = line


def prose(page: Path) -> str:
    """Return the page without its code blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", "\n".join(line for _, line, code in lines(page) if not code))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    result = set()
    for _, line, code in lines(page):
        heading = None if code else re.match(r"#{1,6} +(.*)", line)
        if heading is None:
            continue
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        result.add(f"{slug}-{count}" if count else slug)
    return result


def links(page: Path) -> Iterator[str]:
    """Yield the targets of the page's relative links."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            yield target
