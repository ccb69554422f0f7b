"""What tests of several areas share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from clusterctl.edges.redaction import KNOWN
from tests.edges.journal.postgres import PROGRAMS, SET_UP, PostgresServer, running_server

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("exploring", deadline=None)
settings.load_profile(os.environ.get("CLUSTERCTL_HYPOTHESIS", "same"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hold `scripts/test.sh` to all tests with labs: it gives pytest the files that contain this text."""
    marked = {item.path for item in items if item.get_closest_marker("lab")}
    unseen = sorted(str(path) for path in marked if "pytest.mark.lab" not in path.read_text())
    if unseen:
        raise pytest.UsageError(f"name pytest.mark.lab in {', '.join(unseen)}")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Let a finalizer that runs while a test has used up the stack fail no test.

    A text that is nested too deeply ends in `RecursionError`; what is collected at that moment has no room to end.
    """
    reported = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, RecursionError):
            reported(unraisable)

    sys.unraisablehook = hook


@pytest.fixture(scope="module", autouse=True)
def secrets_of_a_module() -> Iterator[None]:
    """What one module's tests read as secrets, such as the password `wrong`, is not masked in another module's."""
    before = (set(KNOWN._known), KNOWN._packs)
    yield
    KNOWN._known, KNOWN._packs = before


@pytest.fixture(scope="session")
def empty_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite with the journal's tables, to be copied: that costs a tenth of making them."""
    from clusterctl.edges.clock import CLOCK
    from clusterctl.edges.journal import open_journal

    path = tmp_path_factory.mktemp("journal") / "empty.db"
    open_journal(f"sqlite:///{path}", CLOCK).close()
    return path


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """A server of the tests' own. Only where nothing was set up may it be missing."""
    if not PROGRAMS:
        if SET_UP.exists():
            pytest.fail("set-up ran, but PostgreSQL's server is not installed: run make setup again")
        pytest.skip("PostgreSQL's server is not installed: run make setup")
    with running_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a new, empty journal: a test that asks for it runs on both engines."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/journal.db"
    server: PostgresServer = request.getfixturevalue("postgresql")
    return server.url()
