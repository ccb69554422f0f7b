"""A PostgreSQL that became silent, as behind a dead switch, is given up in half a minute; the URL may set other times."""

from __future__ import annotations

import pytest

from clusterctl.edges.journal.database import SILENCE, connect
from tests.edges.journal.postgres import PostgresServer


@pytest.mark.parametrize(("more", "timeout"), [("", SILENCE["tcp_user_timeout"]), ("&tcp_user_timeout=5000", 5000)])
def test_a_connection_does_not_wait_for_ever(postgresql: PostgresServer, more: str, timeout: int) -> None:
    """Each option of the connection is the module's, unless the URL has its own."""
    database = connect(postgresql.url() + more)
    raw = database.engine.raw_connection()
    try:
        options = raw.driver_connection.info.get_parameters()  # type: ignore[union-attr]
    finally:
        raw.close()
        database.engine.dispose()
    wanted = {name: str(value) for name, value in SILENCE.items()} | {"tcp_user_timeout": str(timeout)}
    assert {name: options.get(name) for name in wanted} == wanted


def test_a_file_takes_no_such_option(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SQLite refuses options that it does not know."""
    database = connect(f"sqlite:///{tmp_path_factory.mktemp('j')}/journal.db")
    assert database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar()) == 1
    database.engine.dispose()
