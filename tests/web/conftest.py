"""A site for the tests of the web page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.operations.context import SiteContext, open_site
from tests.cli.site_of_three import write
from tests.web.browser import Browser, access


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteContext]:
    """A site of three nodes that no test changes."""
    opened = open_site(write(tmp_path_factory.mktemp("web")))
    yield opened
    opened.journal.close()


@pytest.fixture
def browser(site: SiteContext, tmp_path: Path) -> Browser:
    """A browser that has not signed in, and a user of each role."""
    return Browser(site, access(tmp_path))
