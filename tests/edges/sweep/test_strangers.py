"""Other services on the BMCs' port: each is one outcome with a remedy, and receives no user name or password."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe
from clusterctl.fleet.bmc.observation import Greeting, SweepOutcome
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.ports.logins import Login
from tests.edges.sweep.kit import PASSWORD, QUICK, OneLogin, network
from tests.edges.sweep.shapes import ROOT, dell
from tests.faulty import status

HOST = "127.77.0.1"
Talk = Callable[[socket.socket, threading.Event], None]


def banner(client: socket.socket, over: threading.Event) -> None:
    """An SSH server."""
    client.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    client.recv(4096)


def closes(client: socket.socket, over: threading.Event) -> None:
    """A service that hangs up at once."""


def mute(client: socket.socket, over: threading.Event) -> None:
    """A service that accepts connections and sends nothing."""
    over.wait(600)


def plain_http(client: socket.socket, over: threading.Event) -> None:
    """A web server without TLS."""
    client.recv(4096)
    client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def garbage(client: socket.socket, over: threading.Event) -> None:
    """Bytes that mean nothing."""
    client.sendall(bytes(range(256)) * 8)
    client.recv(4096)


@contextmanager
def listening(talk: Talk) -> Iterator[int]:
    """Return the port of a service that sends this to each client."""
    over = threading.Event()
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(16)
        listener.settimeout(0.05)

        def serve() -> None:
            while not over.is_set():
                try:
                    client, _ = listener.accept()
                except TimeoutError:
                    continue
                with client:
                    client.settimeout(2)
                    talk(client, over)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("talk", [banner, closes, mute, plain_http, garbage], ids=lambda talk: talk.__name__)
@pytest.mark.parametrize("learn", [False, True])
def test_a_service_without_tls(tmp_path: Path, talk: Talk, learn: bool) -> None:
    """Neither a traceback nor a pin."""
    logins, known = OneLogin(), KnownBmcs(tmp_path / "pins", learn=learn)
    with listening(talk) as port:
        probe = CandidateProbe(lambda host: BmcAddress(host, "", "", port), logins, known, timing=QUICK)
        seen = probe(HOST, Deadline.after(1.0))
    assert seen.outcome in {SweepOutcome.NO_ANSWER, SweepOutcome.NO_REDFISH, SweepOutcome.FAILED}
    assert seen.cause
    assert logins.asked == []
    assert not known.folder.exists()


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(403, SweepOutcome.REJECTED), (400, SweepOutcome.FAILED), (409, SweepOutcome.FAILED), (500, SweepOutcome.FAILED)],
)
def test_logins_that_fail_otherwise(tmp_path: Path, code: int, outcome: SweepOutcome) -> None:
    """Once, and reported literally; a password that the BMC repeats is masked."""
    echo = {"error": {"message": f"you sent {PASSWORD}"}}
    with network(tmp_path, {HOST: dell(HOST, "D1", "02:00:00:00:00:01")}) as net:
        net.bmcs[HOST].faults = {("POST", f"{ROOT}/SessionService/Sessions"): [status(code, echo)] * 5}
        seen = net.visit(HOST)
        assert seen.outcome is outcome
        assert len(net.bmcs[HOST].posted) == 1
        assert PASSWORD not in repr(seen)
        assert "(secret)" in seen.cause


class Broken:
    """Credentials that fail in an unforeseen way."""

    def login(self, host: str, greeting: Greeting) -> Login | None:
        raise ValueError(f"defect with {PASSWORD}")


def test_a_defect_of_ours_is_one_bmcs_outcome(tmp_path: Path) -> None:
    """It does not end the sweep of five hundred others, and its words, which may hold anything, are not repeated."""
    with network(tmp_path, {HOST: dell(HOST, "D1", "02:00:00:00:00:01")}) as net:
        seen = net.visit(HOST, logins=Broken())
    assert (seen.outcome, "ValueError" in seen.cause) == (SweepOutcome.FAILED, True)
    assert PASSWORD not in repr(seen)


def test_two_at_once_of_one_bmc(tmp_path: Path) -> None:
    """One BMC at many addresses, visited at the same time: one login at a time, one rejection in all."""
    hosts = [f"127.77.0.{number}" for number in range(1, 7)]
    trees = {host: dell(host, "D1", "02:00:00:00:00:01") for host in hosts}
    with network(tmp_path, trees, one_bmc=True) as net:
        for bmc in net.bmcs.values():
            bmc.password = "another"
        probe = CandidateProbe(net.door, OneLogin(), KnownBmcs(tmp_path / "pins"), timing=QUICK)
        threads = [threading.Thread(target=probe, args=(host, Deadline.after(60))) for host in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(bmc.logins for bmc in net.bmcs.values()) == 1


def test_a_controller_that_cannot_go_on_blames_no_bmc(tmp_path: Path) -> None:
    """A pin that cannot be written is this machine's trouble: exit code 3, not 511 failed BMCs."""
    (tmp_path / "file").write_text("")
    known = KnownBmcs(tmp_path / "file" / "pins", learn=True)
    with (
        network(tmp_path, {HOST: dell(HOST, "D1", "02:00:00:00:00:01")}) as net,
        pytest.raises(EnvironmentBrokenError),
    ):
        net.visit(HOST, door=net.stranger, known=known)
    assert net.bmcs[HOST].posted == []
