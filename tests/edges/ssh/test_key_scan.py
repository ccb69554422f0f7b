"""The host key that a real sshd offers, and certificates that ssh-keygen signed: which of them count."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.ssh import HostKeyScanner
from clusterctl.edges.ssh.key_scan import certified_key
from clusterctl.fleet.errors import ParseError, UnreachableError
from clusterctl.ports import Deadline
from tests.edges.ssh.sshd import SSHD, Sshd

needs_sshd = pytest.mark.skipif(SSHD is None or shutil.which("ssh-keyscan") is None, reason="needs OpenSSH")
NAME = "node001"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("ca", "other_ca", "host"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(tmp_path / name)]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return tmp_path


def key(folder: Path, name: str) -> str:
    return " ".join((folder / f"{name}.pub").read_text().split()[:2])


def certificate(folder: Path, *options: str, ca: str = "ca", host: bool = True) -> str:
    kind = ("-h",) if host else ()
    argv = ["ssh-keygen", "-q", "-s", str(folder / ca), *kind, "-I", "id", *options, str(folder / "host.pub")]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return (folder / "host-cert.pub").read_text().strip()


def judged(folder: Path, line: str, now: float | None = None) -> str:
    return certified_key(line, (key(folder, "ca"),), (NAME, "10.0.0.1"), now or time.time())


@needs_sshd
@pytest.mark.parametrize("principals", ["node001", "node001.example.org", "a,10.0.0.1"])
def test_a_certificate_of_the_authority_counts(folder: Path, principals: str) -> None:
    """By the host's name, its name with a domain, or its address; what is pinned is the plain key."""
    assert judged(folder, certificate(folder, "-n", principals, "-V", "-1d:+1d")) == key(folder, "host")


@needs_sshd
def test_certificates_that_do_not_count(folder: Path) -> None:
    """Another authority, another host, no host at all, a user's, one that has ended, and one that was changed."""
    wrong = {
        "none of the site's authorities": certificate(folder, "-n", NAME, ca="other_ca"),
        "names node002": certificate(folder, "-n", "node002"),
        "names node0011": certificate(folder, "-n", "node0011"),
        "names no host": certificate(folder),
        "not that of a host": certificate(folder, "-n", NAME, host=False),
        "not valid now": certificate(folder, "-n", NAME, "-V", "-2d:-1d"),
    }
    for reason, line in wrong.items():
        with pytest.raises(ParseError, match=reason):
            judged(folder, line)
    kind, good, *_ = certificate(folder, "-n", NAME).split()
    with pytest.raises(ParseError):
        judged(folder, f"{kind} {good[:-20]}{'A' if good[-20] != 'A' else 'B'}{good[-19:]}")
    with pytest.raises(ParseError, match="not that of a host"):
        judged(folder, key(folder, "host"))


@pytest.fixture
def sshd(folder: Path) -> Iterator[Sshd]:
    for name in ("host", "host.pub"):
        (folder / name).unlink()
    with Sshd(folder) as running:
        yield running


@needs_sshd
def test_a_server_offers_its_key_and_its_certificate(sshd: Sshd) -> None:
    """Without an authority the plain key; with one, the reason why there is no certificate; there is no login."""
    folder, deadline = sshd.folder, Deadline.after(120)
    scanner = HostKeyScanner(port=sshd.port)
    assert scanner.read(NAME, "127.0.0.1", deadline).public == key(folder, "host")
    with_authority = HostKeyScanner((key(folder, "ca"),), sshd.port)
    offered = with_authority.read(NAME, "127.0.0.1", deadline)
    assert (offered.public, offered.certified) == (key(folder, "host"), False)
    assert offered.refused == "the host offers no certificate"


@needs_sshd
def test_a_silent_address_is_unreachable(folder: Path) -> None:
    with pytest.raises(UnreachableError) as caught:
        HostKeyScanner(port=1).read(NAME, "127.0.0.1", Deadline.after(120))
    assert caught.value.remedy
