"""UFM's client against an emulator: logins, trust, refusals, bounds, marking of ports."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.doctor.services import ask_ufm, judge_ufm
from clusterctl.edges.site import load_site
from clusterctl.edges.tls import Trust
from clusterctl.edges.ufm import UfmApi, UfmConnection, site_ufm, time_zone
from clusterctl.fleet.errors import (
    AuthenticationError,
    BusyError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    UnreachableError,
    UntrustedError,
    UsageError,
)
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid
from clusterctl.ports import Deadline
from tests.edges.doctor.bmc_server import loopback_certificate
from tests.edges.site.ready import write_ready_site
from tests.ufm.emulator import PASSWORD, TOKEN, USER, Ufm, served

PORT = PortId(Guid("fc6a1c0300244e00"), 8)
NAME = "fc6a1c0300244e00_8"
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOGINS = {"token": {"token": TOKEN}, "password": {"login": (USER, PASSWORD)}}


@contextmanager
def asking(url: str, **more: object) -> Iterator[UfmApi]:
    given = more or LOGINS["token"]
    with closing(UfmApi(UfmConnection(url=url, **given), CLOCK)) as api:  # type: ignore[arg-type]
        yield api


def limit() -> Deadline:
    return Deadline.after(600)


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("old", [False, True])
def test_read(login: str, old: bool) -> None:
    """By token or by password, of an old and a new version: the same events, with the raw answer as evidence."""
    ufm = Ufm(old=old)
    ufm.add_event(112, NAME, AT, "Link-Downed")
    with served(ufm) as url, asking(url, **LOGINS[login]) as api:
        assert api.version(limit()) == "6.18.0-5"
        observed = api.events(limit())
    (event,) = observed.value.alarms
    assert (event.code, event.ports, event.at) == (112, (PORT,), AT)
    assert b"Link-Downed" in observed.evidence[0].content
    base = "ufmRest" if login == "password" else "ufmRestV3"
    assert ufm.asked == [f"GET /{base}/app/ufm_version", f"GET /{base}/app/events"]


def test_mark() -> None:
    """A port is isolated and released again; UFM then lists it, and then not."""
    ufm = Ufm()
    with served(ufm) as url, asking(url) as api:
        api.isolate(PORT, limit())
        assert [one.port for one in api.unhealthy_ports(limit()).value] == [PORT]
        api.release(PORT, limit())
        assert api.unhealthy_ports(limit()).value == ()
    assert ufm.marks == [("UNHEALTHY", NAME), ("HEALTHY", NAME)]


def test_a_lost_answer_is_never_sent_again() -> None:
    """A marking without an answer may have taken effect: the error demands a look first."""
    ufm = Ufm(dropped=True)
    with served(ufm) as url, asking(url) as api, pytest.raises(OutcomeUnknownError):
        api.isolate(PORT, limit())
    assert ufm.marks == [("UNHEALTHY", NAME)]


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (403, AuthenticationError), (503, BusyError), (400, EdgeError), (302, EdgeError)],
)
def test_refused(status: int, error: type[EdgeError]) -> None:
    """Each refusal is its own error; a redirect is not followed; a secret that the answer repeats is not shown."""
    ufm = Ufm(statuses=[status])
    with served(ufm) as url, asking(url) as api, pytest.raises(error) as found:
        api.events(limit())
    assert TOKEN not in str(found.value)
    assert len(ufm.asked) == 1


def test_what_is_not_ufm() -> None:
    """Another service at that address, a wrong login, or no service: an error with a remedy."""
    ufm = Ufm(version="")
    with served(ufm) as url:
        with asking(url) as api, pytest.raises(ParseError, match="no UFM"):
            api.version(limit())
        with asking(url, token="wrong") as api, pytest.raises(AuthenticationError):
            api.version(limit())
    with asking(url) as api, pytest.raises(UnreachableError):
        api.version(limit())


def test_tls_is_verified(tmp_path: Path) -> None:
    """A certificate of the site's authority or the pinned one is accepted; else no login is sent."""
    file, digest = loopback_certificate(tmp_path, datetime(2099, 1, 1, tzinfo=UTC))

    def wrap(server: ThreadingHTTPServer) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        server.socket = context.wrap_socket(server.socket, server_side=True)

    ufm = Ufm()
    with served(ufm, wrap) as plain:
        url = plain.replace("http://", "https://")
        for trust in (Trust(ca_file=str(file)), Trust(fingerprint=digest)):
            with asking(url, token=TOKEN, trust=trust) as api:
                assert api.version(limit()) == "6.18.0-5"
        asked = len(ufm.asked)
        for trust in (Trust(), Trust(fingerprint="0" * 64)):
            with asking(url, token=TOKEN, trust=trust) as api, pytest.raises(UntrustedError):
                api.version(limit())
        assert len(ufm.asked) == asked


def test_a_connection_holds_a_secret() -> None:
    """Neither its text nor a pickle has it."""
    connection = UfmConnection(url="https://ufm", token=TOKEN)
    assert TOKEN not in repr(connection)
    with pytest.raises(TypeError):
        connection.__reduce_ex__(4)


def site(folder: Path, url: str, more: str = "") -> Path:
    """A site with a UFM, whose token lies in a file of its own."""
    write_ready_site(folder)
    (folder / "secrets/ufm").write_text(TOKEN)
    (folder / "secrets/ufm").chmod(0o600)
    text = (folder / "site.yml").read_text()
    ufm = f"  ufm: {{url: {url!r}, token: {{file: secrets/ufm}}, allow_plain_http: true{more}}}\n"
    assert "\nfabric:\n" in text
    (folder / "site.yml").write_text(text.replace("\nfabric:\n", f"\nfabric:\n{ufm}"))
    return folder


def test_of_a_site(tmp_path: Path) -> None:
    """The site's UFM is asked in UFM's time zone; doctor reports its version, and an empty model as broken."""
    ufm = Ufm()
    with served(ufm) as url:
        found = load_site(site(tmp_path, url, ", time_zone: Europe/Berlin"))
        ufm.add_event(112, NAME, AT)
        settings = found.settings.fabric.ufm
        assert settings is not None
        with closing(site_ufm(found, settings, CLOCK)) as api:
            assert api.events(limit()).value.alarms[0].at == datetime(2026, 1, 1, 11, tzinfo=UTC)
        state = ask_ufm(found, CLOCK)
        assert "model of the fabric is empty" in judge_ufm(url, state).found
        ufm.systems.append({"guid": "fc6a1c0300244e00", "system_name": "leaf-1", "type": "switch"})
        ufm.unhealthy.append(NAME)
        healthy = judge_ufm(url, ask_ufm(found, CLOCK))
        assert "UFM 6.18.0-5, with 1 systems and 1 unhealthy ports" in healthy.found
    assert "does not answer" in judge_ufm(url, ask_ufm(found, CLOCK)).found
    assert "the site has none" in judge_ufm("", state).found


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{url: 'https://ufm'}", "give token, or user and password"),
        ("{url: 'https://ufm', token: {env: A}, password: {env: B}, user: u}", "give token, or user and password"),
        ("{url: 'https://ufm', password: {env: B}}", "belong together"),
        ("{url: 'http://ufm', token: {env: A}}", "plain http shows the login"),
        ("{url: 'https://u:p@ufm', token: {env: A}}", "holds a user or password"),
        ("{url: 'https://ufm', token: plain}", "a secret never stands in this file"),
    ],
)
def test_a_wrong_section(tmp_path: Path, section: str, words: str) -> None:
    """It is refused with the field, and no secret is repeated."""
    write_ready_site(tmp_path)
    text = (tmp_path / "site.yml").read_text()
    (tmp_path / "site.yml").write_text(text.replace("\nfabric:\n", f"\nfabric:\n  ufm: {section}\n"))
    with pytest.raises(UsageError, match=words):
        load_site(tmp_path)


def test_an_unknown_time_zone() -> None:
    """It is refused with the field."""
    with pytest.raises(UsageError, match="no time zone"):
        time_zone("Europe/Nowhere", "site.yml:3")
