"""A BMC gets a password only when it has proven its identity, or where the site explicitly does not require it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.redfish import KnownBmcs, RedfishBmcs
from clusterctl.fleet.errors import EdgeError, UntrustedError, UsageError
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import PASSWORD, TOKEN, Bmc, certificate, serve
from tests.edges.redfish.trees import small
from tests.fake_timer import FakeTimer
from tests.faulty import hang
from tests.secrets.kit import Certified, echo, redirect, serving

Served = tuple[Bmc, BmcAddress]
OTHER_PIN = "ab" * 32


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(small(), tmp_path) as both:
        yield both


def pin_of(address: BmcAddress) -> str:
    return Certified(Path(address.ca_file)).fingerprint


def read(address: BmcAddress, known: KnownBmcs | None = None) -> bytes:
    """The evidence of a walk."""
    with RedfishBmcs(FixedClock(), QUICK, known=known).open(address, Deadline.after(60)) as bmc:
        return bmc.inventory(Deadline.after(60)).evidence[0].content


@contextmanager
def refused(server: Bmc, kind: type[EdgeError] = UntrustedError) -> Iterator[pytest.ExceptionInfo[EdgeError]]:
    """The connection is refused, and the server has not received a single request."""
    with pytest.raises(kind) as caught:
        yield caught
    assert server.asked == []
    assert caught.value.remedy


@pytest.mark.parametrize("write", [str, str.upper, lambda pin: ":".join(pin[i : i + 2] for i in range(0, 64, 2))])
def test_a_pin_is_enough(served: Served, write) -> None:
    """The pinned certificate is believed without any authority, however its fingerprint is written."""
    from clusterctl.formats.certificate_pin import parse_pin

    address = replace(served[1], ca_file="", fingerprint=parse_pin(write(pin_of(served[1]))))
    assert b"EX00042" in read(address)


def test_another_certificate_than_the_pinned_one_is_refused(served: Served) -> None:
    """Although the site's own authority vouches for it: a pin means this certificate and no other. Both are named."""
    server, address = served
    with refused(server) as caught:
        read(replace(address, fingerprint=OTHER_PIN))
    shown = pin_of(address)
    assert ":".join(shown[i : i + 2] for i in range(0, 64, 2)).upper() in caught.value.message
    assert "tls_fingerprint" in caught.value.remedy


def test_an_unknown_bmc_is_refused_unless_the_site_allows_it(served: Served, tmp_path: Path) -> None:
    """A certificate without a known authority gets no password, and no pin is written."""
    server, address = served
    known = KnownBmcs(tmp_path / "pins", learn=False)
    with refused(server):
        read(replace(address, ca_file=""), known)
    assert not known.folder.exists()


def test_first_use_pins_for_ever(served: Served, tmp_path: Path) -> None:
    """Where the site allows it an unknown BMC is trusted once; the pin then counts also when the site no longer allows it.

    The evidence has what was trusted; the pin is a file that only its owner reads.
    """
    _, address = served
    address = replace(address, ca_file="")
    assert b"trusted on first use" in read(address, KnownBmcs(tmp_path / "pins", learn=True))
    known = KnownBmcs(tmp_path / "pins", learn=False)
    assert b"trusted on first use" not in read(address, known)
    file = known.file(address.host)
    assert file.read_text().replace(":", "").strip().lower() == pin_of(served[1])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(known.folder.stat().st_mode) == 0o700


def test_a_certificate_that_changed_after_first_use_is_refused(served: Served, tmp_path: Path) -> None:
    """Also where the site believes on first use: this is not the first."""
    server, address = served
    known = KnownBmcs(tmp_path / "pins", learn=True)
    known.folder.mkdir()
    known.file(address.host).write_text(OTHER_PIN)
    with refused(server):
        read(replace(address, ca_file=""), known)


def test_first_use_never_overrules_sheet_or_authority(served: Served, tmp_path: Path) -> None:
    """What the sheet pins, and what an authority refuses, is not asked about again; nothing is learnt."""
    server, address = served
    known = KnownBmcs(tmp_path / "pins", learn=True)
    for strict in (
        replace(address, fingerprint=OTHER_PIN),
        replace(address, ca_file=str(certificate(tmp_path, "other"))),
    ):
        with refused(server):
            read(strict, known)
    assert not known.folder.exists()


def test_a_pin_file_that_is_garbage_is_the_persons_error(served: Served, tmp_path: Path) -> None:
    """It is never taken for «no pin»."""
    known = KnownBmcs(tmp_path / "pins", learn=True)
    known.folder.mkdir()
    known.file(served[1].host).write_text("")
    with pytest.raises(UsageError, match="pins"):
        read(replace(served[1], ca_file=""), known)
    assert served[0].asked == []


def test_the_address_is_verified_under_an_authority(tmp_path: Path) -> None:
    """A certificate of the right authority for another address is refused."""
    made = Certified.make(tmp_path, address="127.0.0.2")
    with serving(echo(200), made.context) as server:
        with pytest.raises(UntrustedError):
            read(BmcAddress("127.0.0.1", "root", PASSWORD, server.port, str(made.pem)))
        assert str(server.received) == ""


@pytest.mark.parametrize("trust", ["authority", "pin", "first use"])
def test_tls_below_1_2_is_refused(tmp_path: Path, trust: str) -> None:
    """However the BMC is trusted."""
    made = Certified.make(tmp_path)
    known = KnownBmcs(tmp_path / "pins", learn=True)
    with serving(echo(200), made.outdated) as server:
        address = BmcAddress("127.0.0.1", "root", PASSWORD, server.port)
        assert made.uses_outdated_tls(server.port)
        by = {
            "authority": {"ca_file": str(made.pem)},
            "pin": {"fingerprint": made.fingerprint},
            "first use": {},
        }
        with pytest.raises(EdgeError, match="no TLS"):
            read(replace(address, **by[trust]), known)
        assert str(server.received) == ""


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_redirect_elsewhere_carries_nothing(tmp_path: Path, scheme: str) -> None:
    """Neither to another port, nor from TLS to plain HTTP or back: the other one receives nothing at all."""
    made = Certified.make(tmp_path)
    tls = made.context if scheme == "http" else None
    with serving(echo(200), tls) as other:
        target = f"{'https' if tls else 'http'}://127.0.0.1:{other.port}/redfish/v1/"
        for plain in (True, False):
            with serving(redirect(target), None if plain else made.context) as bmc:
                address = BmcAddress("127.0.0.1", "root", PASSWORD, bmc.port, str(made.pem), plain_http=plain)
                with pytest.raises(EdgeError):
                    read(address)
                assert PASSWORD not in str(bmc.received)
        assert str(other.received) == ""


def test_plain_http_where_the_site_allows_it(tmp_path: Path) -> None:
    """The whole walk works without TLS, with the same deadlines."""
    timer = FakeTimer()
    with serve(small(), tmp_path, tls=False) as (server, address):
        assert b"EX00042" in read(replace(address, plain_http=True, ca_file=""))
        assert server.open_sessions == 0
        server.faults["GET", "/redfish/v1/Systems/1"] = [timer.then(hang)]
        bmcs = RedfishBmcs(FixedClock(), QUICK)
        with (
            pytest.raises(EdgeError),
            bmcs.open(replace(address, plain_http=True), Deadline.after(60, timer=timer)) as bmc,
        ):
            bmc.inventory(Deadline.after(60, timer=timer))


def test_plain_http_is_never_fallen_back_to(tmp_path: Path) -> None:
    """A BMC without TLS gets nothing unless the site allows plain HTTP."""
    with serving(echo(200)) as server:
        with pytest.raises(EdgeError):
            read(BmcAddress("127.0.0.1", "root", PASSWORD, server.port))
        assert PASSWORD not in str(server.received)


def test_what_a_bmc_echoes_is_taken_out(served: Served) -> None:
    """Password and token, repeated by the BMC in errors and resources, reach neither error nor evidence."""
    server, address = served
    server.tree["/redfish/v1/Systems/1"]["Description"] = f"token {TOKEN}, password {PASSWORD}"
    content = read(address)
    assert b"Description" in content
    assert PASSWORD.encode() not in content
    assert TOKEN.encode() not in content


@pytest.mark.parametrize("status", [400, 401, 403, 500])
def test_a_login_that_is_refused_with_an_echo(tmp_path: Path, status: int) -> None:
    """The error describes what happened without the password that the BMC repeats."""
    made = Certified.make(tmp_path)

    def answer(handler):
        if handler.command == "GET":
            return 200, {"Content-Type": "application/json"}, b'{"Links": {}}'
        message = b'{"error": {"message": "' + b"x" * 270 + b" " + handler.body.replace(b'"', b'\\"') + b'"}}'
        return status, {"Content-Type": "application/json"}, message

    with serving(answer, made.context) as server:
        with pytest.raises(EdgeError) as caught:
            read(BmcAddress("127.0.0.1", "root", PASSWORD, server.port, str(made.pem)))
        assert PASSWORD in str(server.received)
    assert PASSWORD[:6] not in f"{caught.value} {caught.value!r} {caught.value.remedy}"
