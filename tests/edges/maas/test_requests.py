"""What the client puts on the wire, and what it makes of the versions' machines."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import stamina

from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.fleet.errors import InstallerUnavailableError, OutcomeUnknownError, UnreachableError
from clusterctl.formats.maas import machines as formats
from clusterctl.ports import Deadline
from tests.edges.maas.kit import API_KEY, UtcClock

DATA = Path(__file__).parent / "data"
VERSIONS = json.loads((DATA / "versions.json").read_text())


class Recorder(BaseHTTPRequestHandler):
    """Answers each request with the machine of `data/machine.json`, and records the requests."""

    received: list[tuple[str, str, dict[str, str], bytes]]

    def _reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.received.append((self.command, self.path, headers, body))
        answer = (DATA / "machine.json").read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = _reply  # noqa: N815 — the names that http.server calls

    def log_message(self, *args: Any) -> None:
        pass


Received = list[tuple[str, str, dict[str, str], bytes]]


@pytest.fixture
def recorder() -> Iterator[tuple[MaasSettings, Received]]:
    handler = type("Recorder", (Recorder,), {"received": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/MAAS"
    yield MaasSettings(url, API_KEY, "jammy", allow_plain_http=True), handler.received
    server.shutdown()
    server.server_close()


@pytest.fixture
def maas(recorder: tuple[MaasSettings, Received]) -> tuple[Machines, Received]:
    settings, received = recorder
    return Machines(MaasApi(settings, UtcClock())), received


def test_each_request_that_changes_something_takes_a_turn(recorder: tuple[MaasSettings, Received]) -> None:
    """Before it is sent, until it is answered; what only reads takes none. Without a turn nothing is sent."""
    settings, received = recorder
    turns: list[int] = []

    @contextmanager
    def turn(deadline: Deadline) -> Iterator[None]:
        deadline.check("waiting for a turn")
        turns.append(len(received))
        yield
        turns.append(len(received))

    machines = Machines(MaasApi(settings, UtcClock(), turn))
    machines.release("abc123", Deadline.after(60))
    assert turns == [0, 1]
    machines.get("abc123", Deadline.after(60))
    assert (len(turns), len(received)) == (2, 2)

    @contextmanager
    def never(_deadline: Deadline) -> Iterator[None]:
        raise UnreachableError("no turn came")
        yield

    with pytest.raises(UnreachableError, match="no turn"):
        Machines(MaasApi(settings, UtcClock(), never)).release("abc123", Deadline.after(60))
    assert len(received) == 2


def test_an_operation_without_fields_has_no_body_at_all(maas):
    """From 3.6 on MAAS answers 400 to an empty multipart body; the operation stands in the query, the path ends in `/`."""
    machines, received = maas
    deadline = Deadline.after(60)
    machines.release("abc123", deadline)
    machines.abort("abc123", deadline)
    machines.set_boot_disk("abc123", 7, deadline)
    for method, path, headers, body in received:
        assert (method, body) == ("POST", b"")
        assert "content-type" not in headers
        assert "/?op=" in path


def test_fields_are_a_form_and_never_json(maas):
    """To a JSON body `deploy` answers 200 and ignores every field."""
    machines, received = maas
    machines.deploy("abc123", "jammy", "#cloud-config\n", Deadline.after(60))
    _, path, headers, body = received[0]
    assert path.endswith("/machines/abc123/?op=deploy")
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert body == b"distro_series=jammy&user_data=I2Nsb3VkLWNvbmZpZwo%3D"


def test_each_request_is_signed_afresh_with_the_key_and_nothing_else(maas):
    """MAAS refuses a nonce that it knows; the secret stands nowhere but in the header."""
    machines, received = maas
    for _ in range(2):
        machines.get("abc123", Deadline.after(60))
    signatures = [headers["authorization"] for _, _, headers, _ in received]
    assert signatures[0] != signatures[1]
    for _, path, headers, body in received:
        assert 'oauth_signature_method="PLAINTEXT"' in headers["authorization"]
        assert "secretkey" not in path + body.decode()


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case["version"])
def test_a_machine_of_each_version_is_read_alike(case):
    """Fields that came with a version, or are not there yet, change nothing."""
    body = json.loads((DATA / "machine.json").read_text())
    of_version = {name: value for name, value in {**body, **case["with"]}.items() if name not in case["without"]}
    assert formats.machine(of_version) == formats.machine(body)


ALERT = b"\x15\x03\x03\x00\x02\x02\x50"
"""A fatal TLS alert: internal error."""


@pytest.fixture(params=[b"", ALERT], ids=["closed", "alert"])
def balancer(request: pytest.FixtureRequest) -> Iterator[MaasSettings]:
    """A balancer whose region is dead: it ends each connection in the midst of the TLS handshake."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(request.param)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(65536)

    threading.Thread(target=serve, daemon=True).start()
    stamina.set_testing(True, attempts=1)
    yield MaasSettings(f"https://127.0.0.1:{server.getsockname()[1]}/MAAS", API_KEY, "jammy")
    stamina.set_testing(False)
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def test_tls_that_fails_without_a_wrong_certificate_is_an_absence(balancer: MaasSettings) -> None:
    """No machine is to blame: reads wait for MAAS. Of a write it stays open whether it was sent."""
    machines = Machines(MaasApi(balancer, UtcClock()))
    with pytest.raises(InstallerUnavailableError):
        machines.get("abc123", Deadline.after(60))
    with pytest.raises(OutcomeUnknownError):
        machines.release("abc123", Deadline.after(60))
