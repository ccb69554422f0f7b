"""docs/reference/commands.md and the README have every command of today's command line."""

from __future__ import annotations

import os

from tests.docs.command_page import PAGE, README, page, readme
from tests.docs.pages import with_docs


@with_docs
def test_the_command_reference_is_that_of_the_command_line() -> None:
    """The page is written where `CLUSTERCTL_WRITE_PAGES` is set, and compared otherwise."""
    wanted = page()
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "CLUSTERCTL_WRITE_PAGES=1 pytest … writes the page"


@with_docs
def test_the_readme_lists_the_commands_of_the_command_line() -> None:
    """Likewise."""
    wanted = readme()
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        README.write_text(wanted, encoding="utf-8")
    assert README.read_text(encoding="utf-8") == wanted, "CLUSTERCTL_WRITE_PAGES=1 pytest … writes the table"
