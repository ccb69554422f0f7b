"""`clusterctl doctor` on this machine: with and without a site, and with things that are broken for real."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.doctor import controller, site_checks
from clusterctl.edges.doctor.services import ask_bmcs
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.edges.site import load_site
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import UnreachableError, UntrustedError
from clusterctl.operations.context import open_site
from clusterctl.ports import BmcAddress
from clusterctl_cli.main import run
from tests.cli.conftest import log_levels
from tests.cli.inputs.test_wrong_inputs import snapshot
from tests.edges.doctor.bmc_server import bmc
from tests.edges.site.ready import SECRETS, write_ready_site
from tests.paths import ROOT, needs_checkout

__all__ = ["log_levels"]
CLOSED = 9
"""TCP's discard service: no machine runs it."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with all services on this machine, at ports where no server listens."""
    folder = write_ready_site(tmp_path / "site")
    (folder / "bmcs.csv").write_text("name,bmc\nnode001,127.0.0.1\n")
    text = (folder / "site.yml").read_text().replace("maas.example:5443", f"127.0.0.1:{CLOSED}")
    (folder / "site.yml").write_text(text.replace("  user: root", f"  user: root\n  port: {CLOSED}"))
    return folder


def examined(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, dict[str, str]], str]:
    """(exit code, checks by name, all output)."""
    code = run(["doctor", "--json", *argv])
    out = capfd.readouterr().out
    return code, {item["name"]: item for item in json.loads(out)["checks"]}, out


def test_a_site_is_looked_at_without_a_trace(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 3 for what is broken; each check is there once, with a remedy; no secret is printed, nothing written."""
    before = snapshot(site)
    code, checks, message = examined(capfd, "--site", str(site))
    assert code == 3
    assert checks["bmcs"]["verdict"] == checks["maas"]["verdict"] == "broken"
    assert "Connection refused" in checks["bmcs"]["found"]
    assert {"site", "secrets", "journal", "disk", "control_path"} <= {
        n for n, c in checks.items() if c["verdict"] == "ok"
    }
    assert all(check["remedy"] for check in checks.values() if check["verdict"] in ("warn", "broken"))
    assert not [secret for secret in SECRETS if secret in message]
    assert snapshot(site) == before


def test_without_a_site_the_rest_is_reported_as_not_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In a folder without a site the machine is looked at; what needs a site is not measured, and that is no fault."""
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        code, checks, _ = examined(capfd)
    finally:
        os.chdir(here)
    assert code == 0
    assert checks["ansible"]["verdict"] == checks["kernel"]["verdict"] == "ok"
    assert checks["bmcs"]["verdict"] == checks["site"]["verdict"] == "not_measured"


def test_a_wrong_site_is_a_diagnosis(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A site file that cannot be read is reported among the others, with file, line and field."""
    (site / "site.yml").write_text((site / "site.yml").read_text().replace("install: 32", "install: 0"))
    code, checks, _ = examined(capfd, "--site", str(site))
    assert code == 3
    assert "batch.install: must be 1 or more" in checks["site"]["found"]
    assert checks["maas"]["verdict"] == "not_measured"


def test_a_secret_that_others_may_read(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is found, and the command that mends it is the remedy."""
    (site / "secrets" / "bmc-password").chmod(0o644)
    _, checks, _ = examined(capfd, "--site", str(site))
    assert checks["secrets"]["verdict"] == "broken"
    assert checks["secrets"]["remedy"].startswith("chmod 600")


def test_for_people_each_check_is_a_line(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A mark, the name, what was found; below it what to do."""
    assert run(["doctor", "--site", str(site)]) == 3
    text = capfd.readouterr().out
    assert "✓ kernel" in text
    assert "✗ bmcs" in text
    assert "→ check the route" in text


def test_ansible_that_is_not_there(tmp_path: Path) -> None:
    """A PATH without Ansible."""
    assert controller.judge_ansible(controller.probe_ansible(str(tmp_path))).health is Health.BROKEN


def test_ansible_that_does_not_start(tmp_path: Path) -> None:
    """A program of that name that fails: its first words are reported."""
    program = tmp_path / "ansible-playbook"
    program.write_text("#!/bin/sh\necho no module named ansible >&2\nexit 1\n")
    program.chmod(0o755)
    found = controller.judge_ansible(controller.probe_ansible(f"{tmp_path}:{os.environ['PATH']}"))
    assert found.health is Health.BROKEN
    assert "no module named ansible" in found.found


def test_a_bmc_that_is_right(tmp_path: Path) -> None:
    """TLS that the authority vouches for, and the pinned one, answer; there is no login; its clock is read."""
    with bmc(tmp_path, clock=timedelta(hours=2)) as served:
        vouched = BmcAddress("127.0.0.1", "", "", served.port, ca_file=str(served.ca_file))
        pinned = BmcAddress("127.0.0.1", "", "", served.port, fingerprint=served.fingerprint)
        for address in (vouched, pinned):
            answer = ask_bmcs([address], first_use=False)["127.0.0.1"]
            assert answer.error is None
            assert answer.offset_s == pytest.approx(7200, abs=5)
        assert served.requests == ["GET /redfish/v1/ None"] * 2


def test_a_bmc_with_an_unknown_certificate(tmp_path: Path) -> None:
    """An expired certificate, an unknown one and another than the pinned one: nothing is asked of it."""
    with bmc(tmp_path, ends=timedelta(days=-1)) as served:
        expired = BmcAddress("127.0.0.1", "", "", served.port, ca_file=str(served.ca_file))
        unknown = BmcAddress("127.0.0.1", "", "", served.port)
        other = BmcAddress("127.0.0.1", "", "", served.port, fingerprint="0" * 64)
        answers = [ask_bmcs([address], first_use=False)["127.0.0.1"] for address in (expired, unknown, other)]
        assert all(isinstance(answer.error, UntrustedError) for answer in answers)
        assert "expired" in str(answers[0].error)
        assert ask_bmcs([unknown], first_use=True)["127.0.0.1"].new
        assert served.requests == []


def test_an_address_without_a_bmc() -> None:
    """No server listens: reported as such."""
    answer = ask_bmcs([BmcAddress("127.0.0.1", "", "", CLOSED)], first_use=False)["127.0.0.1"]
    assert isinstance(answer.error, UnreachableError)


@contextmanager
def dripping() -> Iterator[int]:
    """A server that takes every connection and sends a byte now and then, for ever; its port."""
    stopped = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while not stopped.wait(0.05):
                connection.sendall(b"H")

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    pool.submit(drip, server.accept()[0])

        pool.submit(serve)
        try:
            yield server.getsockname()[1]
        finally:
            stopped.set()
            server.shutdown(socket.SHUT_RDWR)


def test_a_bmc_that_sends_slowly_delays_no_other_check() -> None:
    """One that never ends its answer is given up when the round is over, and counts as not asked in time or failed."""
    with dripping() as port:
        began = time.monotonic()
        answers = ask_bmcs([BmcAddress("127.0.0.1", "", "", port, plain_http=True)], first_use=False, within_s=0.5)
        assert time.monotonic() - began < 200
    assert all(answer.error is not None for answer in answers.values())


@needs_checkout
def test_the_page_names_every_check(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """docs/reference/doctor.md has each check that there is, and no other."""
    page = (ROOT / "docs/reference/doctor.md").read_text()
    reported = {
        name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    found = set(examined(capfd, "--site", str(site))[1])
    capfd.readouterr()
    run(["lab", "check", "--json"])
    of_the_lab = {item["name"] for item in json.loads(capfd.readouterr().out)["checks"]}
    assert found | of_the_lab == reported


def test_the_journal_is_read_and_never_made(site: Path) -> None:
    """No journal yet; one of ours; one of a newer version; one that only `PRAGMA quick_check` finds damaged; no database."""
    loaded = load_site(site)
    assert "not there yet" in site_checks.check_journal(loaded).found
    assert not (site / "state").exists()
    open_site(site).journal.close()
    before = snapshot(site)
    assert f"version {SCHEMA_VERSION}" in site_checks.check_journal(loaded).found
    assert snapshot(site) == before
    with sqlite3.connect(site / "state" / "journal.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert site_checks.check_journal(loaded).health is Health.BROKEN
    open_again = sqlite3.connect(site / "state" / "journal.db")
    with closing(open_again), open_again:
        open_again.execute("UPDATE alembic_version SET version_num = ?", [SCHEMA_VERSION])
    _lose_an_index(site / "state" / "journal.db")
    found = site_checks.check_journal(loaded)
    assert found.health is Health.BROKEN
    assert "is damaged" in found.found
    assert "clusterctl journal verify" in found.remedy
    (site / "state" / "journal.db").write_bytes(b"SQLite format 3\0" + bytes(4096))
    assert site_checks.check_journal(loaded).health is Health.BROKEN


def _lose_an_index(file: Path) -> None:
    """Overwrite the root page of one index, as a bad sector does."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event_by_kind'").fetchone()[0]
    content = bytearray(file.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = bytes(4096)
    file.write_bytes(content)


def test_a_database_that_does_not_run(site: Path) -> None:
    """PostgreSQL at a port where no server listens is broken, without its password in the message."""
    found = site_checks.probe_journal(
        f"postgresql+psycopg://u:{SECRETS[0]}@127.0.0.1:{CLOSED}/d", {"connect_timeout": 2}
    )
    assert found.health is Health.BROKEN
    assert SECRETS[0] not in found.found
