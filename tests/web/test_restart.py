"""A restart of the web service, with real processes: what was ordered on its page goes on, and is followed by the next one."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from clusterctl.operations.runs import RunState
from tests.busy_site import Place, busy_site
from tests.ports import reserve_port
from tests.processes import command_of, gone
from tests.steps.fakes import identified

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
WAIT_S = 600.0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with busy_site(tmp_path) as found:
        context = found.open()
        with closing(context.journal):
            identified(context.journal, "n1", "S1", "cabled")
        yield found


@contextmanager
def service(place: Place, port: int) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Start `clusterctl web`, as the unit does; yield its process and a client that has signed in at its address."""
    argv = (
        sys.executable,
        "-m",
        "clusterctl_cli.main",
        "web",
        "--site",
        str(place.folder),
        "--listen",
        f"127.0.0.1:{port}",
    )
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S) as client:
                assert client.get(address).status_code == 303
                yield process, client
        finally:
            process.kill()


def send(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form with the token of the session's pages."""
    token = re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)
    assert token is not None
    return client.post(path, data={"csrf": token[1], **fields})


def test_a_restart_of_the_service_ends_no_run(place: Place) -> None:
    """Only the service's own process ends, as with KillMode=process: killed at first, then stopped as systemd stops it.
    The run is of a process that goes on; the next start of the service shows it.
    """
    port = reserve_port("127.0.0.1")
    with service(place, port) as (process, client):
        preview = send(client, "/nodes/n1/actions/power", order="on", reason="a test")
        ordered = client.post("/nodes/n1/actions/power", data=dict(HIDDEN.findall(preview.text)))
        assert ordered.status_code == 303, ordered.text
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_S)
    with service(place, port) as (process, client):
        assert "running" in client.get(ordered.headers["location"]).text
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    (record,) = place.runs()
    assert record.state is RunState.RUNNING
    assert record.process is not None
    assert record.name in command_of(record.process.pid)
    assert not gone(record.process.pid)
