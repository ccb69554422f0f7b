"""Every relative link of the documentation leads somewhere, and every page can be reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, OTHERS, PAGES, anchors, links, named, with_docs
from tests.paths import ROOT

pytestmark = with_docs


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=named)
def test_every_link_and_anchor_resolves(page: Path) -> None:
    """The file of a relative link exists, and its anchor is a heading of that file."""
    broken = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


def test_every_page_named_in_the_code_exists() -> None:
    """Messages, help texts and comments name pages that exist."""
    broken = []
    for folder in ("src", "cli", "burnin", "lab", "roles", "playbooks", "scripts", "benchmarks", "tests"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix not in {".py", ".yml", ".j2", ".md", ".sh", ".tsv", ""} or not file.is_file():
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
            broken += [
                f"{named(file)}: {page}"
                for page in re.findall(r"(?<![\w./-])docs/[\w/-]+\.md", text)
                if not (ROOT / page).is_file()
            ]
    assert not broken


def test_pages_lie_in_four_parts() -> None:
    """A page is a tutorial, a how-to, reference or explanation; decisions and soak runs have folders of their own."""
    parts = {page.relative_to(DOCS).parts[0] for page in PAGES}
    assert parts <= {"index.md", "tutorial", "how-to", "reference", "explanation", "adr", "soak"}
