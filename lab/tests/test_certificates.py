"""The lab's certificates: verified by address, against the lab's own authority."""

from __future__ import annotations

import asyncio
import ssl
import stat
from pathlib import Path

import pytest

from clusterctl_lab.certificates import LabCa


async def connect(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, address: str, claimed: str) -> None:
    """A TLS handshake on the loopback; the client believes to talk to `claimed`."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), address, 0, ssl=server_tls)
    port = server.sockets[0].getsockname()[1]
    try:
        _, writer = await asyncio.open_connection(address, port, ssl=client_tls, server_hostname=claimed)
        writer.close()
    finally:
        server.close()


def test_clients_verify_the_address(tmp_path: Path) -> None:
    """A strict client accepts a service on each of its addresses and on no other."""
    ca = LabCa(tmp_path / "tls", "lab")
    server = ca.certificate_for("127.0.0.5", "127.0.0.6")
    client = ssl.create_default_context(cafile=str(ca.ca_file))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    for address in ("127.0.0.5", "127.0.0.6"):
        asyncio.run(connect(server, client, address, address))
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        asyncio.run(connect(server, client, "127.0.0.5", "127.0.0.7"))


def test_another_labs_certificate_is_refused(tmp_path: Path) -> None:
    """Each lab has an authority of its own."""
    mine, other = LabCa(tmp_path / "one", "lab"), LabCa(tmp_path / "two", "lab")
    client = ssl.create_default_context(cafile=str(other.ca_file))
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(connect(mine.certificate_for("127.0.0.5"), client, "127.0.0.5", "127.0.0.5"))


def test_keys_are_private(tmp_path: Path) -> None:
    """A service's key is readable by root only; the authority's is in no file at all."""
    ca = LabCa(tmp_path / "tls", "lab")
    ca.certificate_for("127.0.0.5")
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700
    with_keys = [path for path in (tmp_path / "tls").iterdir() if "PRIVATE KEY" in path.read_text()]
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in with_keys] == [("127.0.0.5.pem", 0o600)]
