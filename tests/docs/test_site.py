"""mkdocs.yml lists every page once; `make docs` builds the site with --strict."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, PAGES, with_docs
from tests.paths import ROOT


@with_docs
def test_the_navigation_has_every_page() -> None:
    """Decisions and soak runs are listed by their folders (scripts/docs_pages.py), all others by name."""
    listed = re.findall(r"^ *- .*: ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {str(page.relative_to(DOCS)) for page in PAGES}
    assert sorted(listed) == sorted(page for page in pages if not page.startswith(("adr/", "soak/")))
