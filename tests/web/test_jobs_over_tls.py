"""`clusterctl job … --server` over TLS: the service itself with a certificate, and peers that must not get the token."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509

from clusterctl.edges.job_service import JobService
from clusterctl.edges.site import Site
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import ApiToken, UserRole
from clusterctl.fleet.errors import EdgeError, UnreachableError, UntrustedError, UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.payloads.jobs import JobRunEnded
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_client import JobClient
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_watchers import require_watcher
from clusterctl_cli.main import run
from tests.edges.slurm.job_site import JobSite, job_site
from tests.operations.written_orders import WrittenOrders
from tests.web.browser import QUICK
from tests.web.test_job_orders import FakeAdapters
from tests.web.test_service import certificate, served, with_certificate

USER, RUN = "ada", "run-1"
HERE = (x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1")))
ORDER = JobRunRequest(script="/home/ada/train.sh", folder="/home/ada/logs", nodes=2)


@dataclass(frozen=True)
class LoginNode:
    """What a user has: the address, the token in a file of his own, and the authority's certificate."""

    context: SiteContext
    url: str
    token: Path
    authority: Path

    def clusterctl(self, *words: str, ca_file: Path | None = None) -> int:
        trust = ("--ca-file", str(ca_file)) if ca_file else ()
        return run(["job", *words, "--server", self.url, "--token-file", str(self.token), *trust])

    def client(self) -> JobClient:
        return JobClient(JobService(self.url, self.token.read_text(), str(self.authority)))


@pytest.fixture
def login(tmp_path: Path) -> Iterator[LoginNode]:
    """The service with a certificate for localhost, on all addresses; a run of the user is open and is watched."""
    with job_site(tmp_path / "made") as site:
        pem, key = certificate(tmp_path, *HERE)
        context = with_certificate(connected(site), pem, key)
        now = datetime.now(UTC)
        token = ApiToken(
            name="ada-login", role=UserRole.VIEWER, digest="", made_at=now, made_by="root",
            expires_at=now + timedelta(days=1), jobs_of=USER,
        )  # fmt: skip
        file = tmp_path / "token"
        file.write_text(AccountFile(context.site.folder / "state" / "web", QUICK).add(token))
        file.chmod(0o600)
        context.journal.append([NewEvent(Stream.JOB, RUN, ORDER.ordered(USER))])
        require_watcher(context, RUN, WrittenOrders())
        with served(context, "0.0.0.0:0") as address:
            yield LoginNode(context, address.rstrip("/"), file, pem)


def connected(site: JobSite) -> SiteContext:
    """Return the site's context with a scheduler on which all nodes are idle."""

    def connect(settings: Site, rights: Access) -> FakeAdapters:
        return FakeAdapters(settings, rights, site.hosts)

    return replace(site.context, connect=connect)


def test_a_user_works_over_tls(login: LoginNode, capsys: pytest.CaptureFixture[str]) -> None:
    """The command lists, the preview has nodes, and the stream of events brings the end: all by the authority's file."""
    assert login.clusterctl("list", "-o", "json", ca_file=login.authority) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["runs"]] == [RUN]
    preview, digest = login.client().preview(ORDER)
    assert (len(preview.effects), bool(digest)) == (2, True)
    ended = NewEvent(Stream.JOB, RUN, JobRunEnded(outcome="stopped", reason="by its user"))
    threading.Timer(0.5, lambda: login.context.journal.append([ended])).start()
    assert [one["run"]["state"] for one in login.client().follow(RUN)][-1] == "stopped"


def test_a_wrong_token_has_a_remedy(login: LoginNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a token that the service does not know, nor a missing file, leaves its user without a next step."""
    wrong = tmp_path / "wrong"
    wrong.write_text("none-of-its-tokens")
    wrong.chmod(0o600)
    for file in (wrong, tmp_path / "missing"):
        assert replace(login, token=file).clusterctl("list", ca_file=login.authority) != 0
        assert "clusterctl web token add" in capsys.readouterr().err


def test_without_the_authority_nothing_is_trusted(login: LoginNode, capsys: pytest.CaptureFixture[str]) -> None:
    """A certificate that the system does not know is refused; the remedy names the option."""
    assert login.clusterctl("list") == UntrustedError.exit_code
    assert "--ca-file" in capsys.readouterr().err


def test_without_tls_the_service_answers_nothing(login: LoginNode) -> None:
    """On a loopback address the token may go without TLS; a service with a certificate has no such port."""
    plain = login.url.replace("https:", "http:")
    with pytest.raises(UnreachableError):
        JobService(plain, login.token.read_text()).get("jobs")


@pytest.mark.parametrize("content", ["", "no certificate\n", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_an_authority_that_is_none_is_a_wrong_option(
    login: LoginNode, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "authority.pem"
    file.write_text(content)
    assert login.clusterctl("list", ca_file=file) == UsageError.exit_code
    assert "--ca-file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:8443", "http://localhost.example.com", "http://controller", "http://2130706433.example"]
)
def test_a_token_is_not_sent_without_tls(login: LoginNode, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Other than to a loopback address; it is refused before anything is looked up."""
    assert replace(login, url=url).clusterctl("list") == UsageError.exit_code
    assert "without TLS" in capsys.readouterr().err


@dataclass
class Peer:
    """Another server at the address: what it has read inside TLS, and the connections that came to it."""

    url: str
    read: list[bytes] = field(default_factory=list)
    connections: int = 0


@contextmanager
def peer(context: ssl.SSLContext | None, answer: bytes = b"") -> Iterator[Peer]:
    """Listen on a port of 127.0.0.1, with TLS where there is a context, and send the same answer to each request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        scheme = "https" if context else "http"
        found = Peer(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}")

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                found.connections += 1
                try:
                    with context.wrap_socket(connection, server_side=True) if context else connection as stream:
                        found.read.append(stream.recv(65536))
                        stream.sendall(answer)
                except OSError:
                    connection.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield found
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(600)


def tls(folder: Path, *names: x509.GeneralName) -> tuple[ssl.SSLContext, Path]:
    """Return the context of a server with a new certificate for these names, and the certificate."""
    folder.mkdir()
    pem, key = certificate(folder, *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    return context, pem


def test_another_certificate_gets_no_token(tmp_path: Path) -> None:
    """Neither one of another authority, nor a trusted one of another host: the handshake ends before the request."""
    ours, authority = tls(tmp_path / "ours", x509.DNSName("controller.example.com"))
    other, _ = tls(tmp_path / "other", *HERE)
    for context in (ours, other):
        with peer(context) as found, pytest.raises(UntrustedError):
            JobService(found.url, "secret-token", str(authority)).get("jobs")
        assert b"".join(found.read) == b""
        assert found.connections > 0


def test_a_redirect_takes_the_token_nowhere(tmp_path: Path) -> None:
    """The service itself never redirects; what does is an error, and the other address is not asked."""
    context, authority = tls(tmp_path / "ours", *HERE)
    with peer(None) as elsewhere:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere.url}/api/v1/jobs\r\nContent-Length: 0\r\n\r\n"
        with peer(context, moved.encode()) as found, pytest.raises(EdgeError):
            JobService(found.url, "secret-token", str(authority)).get("jobs")
    assert b"Bearer secret-token" in found.read[0]
    assert elsewhere.connections == 0
