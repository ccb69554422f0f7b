"""docs/reference/finding-codes.md has every code of a finding."""

from __future__ import annotations

import os

from tests.docs.code_page import PAGE, page
from tests.docs.pages import with_docs


@with_docs
def test_the_page_has_every_code() -> None:
    """Written where `CLUSTERCTL_WRITE_PAGES` is set, and compared otherwise."""
    wanted = page()
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "CLUSTERCTL_WRITE_PAGES=1 pytest tests/docs writes the page"
