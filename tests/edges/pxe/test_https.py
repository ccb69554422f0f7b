"""The installer service over TLS: one EFI program for the machine whose BMC has the ticket, and nothing for others."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from clusterctl.edges.pxe.attempt import AttemptState, BootFiles, InstallAttempt
from clusterctl.edges.pxe.attempt_store import AttemptStore, start_ticket
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.channel import Setup
from clusterctl.edges.pxe.server import ConnectionLimits
from tests.edges.pxe.kit import HELLO, MAC, SERIAL, TickingClock, armed, in_threads, report
from tests.edges.pxe.tls_kit import BootAuthority, site_files
from tests.formats.test_unified_kernel import sections_of, stub

ARGUMENTS = "clusterctl.server=https://127.0.0.1 clusterctl.token=T BOOTIF=01-02-00-00-00-00-01 quiet"
KERNEL, INITRD = b"kernel" * 1000, b"initrd" * 2000
BASE = "https://192.0.2.1:8080"


@dataclass(frozen=True)
class ServedOverTls:
    """The service as firmware and the deployer see it."""

    attempts: AttemptStore
    attempt: InstallAttempt
    port: int
    ca: Path
    other_ca: Path
    boot_folder: Path

    @property
    def ticket(self) -> str:
        return start_ticket(self.attempt.token)

    def call(self, method: str, path: str, ca: Path | None = None) -> requests.Response:
        url = f"https://127.0.0.1:{self.port}{path}"
        return requests.request(method, url, verify=str(ca or self.ca), timeout=600)

    @property
    def state(self) -> AttemptState:
        found = self.attempts.find(self.attempt.node)
        assert found is not None
        return found.state


@contextmanager
def serving(folder: Path, limits: ConnectionLimits, **changes: object) -> Iterator[ServedOverTls]:
    boot_folder = folder / "boot"
    deployer = boot_folder / "deployer/d1"
    deployer.mkdir(parents=True)
    for name, content in (("stub.efi", stub()), ("vmlinuz", KERNEL), ("initrd", INITRD)):
        (deployer / name).write_bytes(content)
    boot = BootFiles("deployer/d1/vmlinuz", "deployer/d1/initrd", ARGUMENTS, "deployer/d1/stub.efi")
    attempts = AttemptStore(folder / "pxe" / "machines")
    attempt = attempts.put(armed(boot=boot, **changes), {"overlay.tar": b"a tar"})
    files = site_files(folder / "tls", "127.0.0.1")
    tls = files.read("127.0.0.1")
    other = folder / "other.pem"
    other.write_text(BootAuthority(1).pem)
    setup = Setup(BASE, str(boot_folder), HELLO, certificate=tls.certificate, private_key=tls.private_key)
    with in_threads(setup, BootHandlers(BASE, attempts, TickingClock()), limits) as port:
        yield ServedOverTls(attempts, attempt, port, files.ca, other, boot_folder)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedOverTls]:
    with serving(tmp_path, ConnectionLimits()) as found:
        yield found


def test_firmware_loads_one_program(served: ServedOverTls) -> None:
    """HEAD gives its size and changes nothing; GET has kernel, initial file system and the attempt's command line."""
    path = f"/efi/{served.ticket}.efi"
    head = served.call("HEAD", path)
    assert (head.status_code, head.headers["Content-Type"]) == (200, "application/efi")
    assert served.state is AttemptState.ARMED
    got = served.call("GET", path)
    assert got.headers["Content-Length"] == head.headers["Content-Length"] == str(len(got.content))
    found = sections_of(got.content)
    assert [found[name][2] for name in (".cmdline", ".linux", ".initrd")] == [ARGUMENTS.encode(), KERNEL, INITRD]
    assert served.state is AttemptState.SEEN


def test_only_the_sites_authority_counts(served: ServedOverTls) -> None:
    """A client with another authority gets nothing, nor does one of plain HTTP."""
    with pytest.raises(requests.exceptions.SSLError):
        served.call("GET", f"/efi/{served.ticket}.efi", ca=served.other_ca)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(f"http://127.0.0.1:{served.port}/boot.ipxe", timeout=600)
    assert served.state is AttemptState.ARMED


def test_no_other_client_gets_the_token(served: ServedOverTls) -> None:
    """Card and serial, which any neighbour can know, give no script; a wrong ticket gives no program."""
    script = served.call("GET", f"/boot/{MAC}.ipxe?serial={SERIAL}").text
    assert "boots over HTTPS" in script
    assert served.ticket not in script
    for path in (
        f"/start/{served.ticket}.ipxe?mac={MAC}&serial={SERIAL}",
        f"/efi/{'0' * 64}.efi",
        "/efi/x",
        "/efi/.efi",
    ):
        assert served.call("GET", path).status_code == 404
    assert served.state is AttemptState.ARMED


def test_a_program_from_elsewhere(tmp_path: Path) -> None:
    """A client that has read the URI in the BMC, and asks from another address than the reserved one: nothing, and a note."""
    with serving(tmp_path, ConnectionLimits(), only_from="192.0.2.17") as served:
        assert served.call("GET", f"/efi/{served.ticket}.efi").status_code == 404
        assert "asked for its installer and got no answer" in served.attempts.noted(served.attempt)
        assert served.state is AttemptState.ARMED


def test_an_attempt_for_ipxe_has_no_program(tmp_path: Path) -> None:
    """An attempt that was armed before the site chose HTTPS: its ticket loads nothing by this way."""
    with serving(tmp_path, ConnectionLimits()) as served:
        plain = served.attempts.put(armed("node002", id="b", macs=(), serial="SN0002"), {})
        assert served.call("GET", f"/efi/{start_ticket(plain.token)}.efi").status_code == 404


def test_the_report_names_the_card(served: ServedOverTls) -> None:
    """Firmware does not report by which card it booted: the deployer's report does. No other machine's card counts."""
    url = f"/t/{served.attempt.token}/report"
    for card, known in (("02:00:00:00:00:99", None), (MAC, MAC)):
        body = f"{report()}booted={card}\n"
        answer = requests.post(
            f"https://127.0.0.1:{served.port}{url}", data=body.encode(), verify=str(served.ca), timeout=600
        )
        assert answer.status_code == 200
        found = served.attempts.find(served.attempt.node)
        assert found is not None
        assert found.card == known


def test_a_second_boot_while_the_disk_is_written(served: ServedOverTls) -> None:
    """The attempt has failed, as with iPXE, and its ticket loads nothing."""
    url = f"https://127.0.0.1:{served.port}/t/{served.attempt.token}/report"
    assert requests.post(url, data=report().encode(), verify=str(served.ca), timeout=600).status_code == 200
    assert served.call("GET", f"/efi/{served.ticket}.efi").status_code == 404
    assert served.state is AttemptState.FAILED


def test_a_deployer_that_is_gone(served: ServedOverTls) -> None:
    """Its files were removed meanwhile: asked again later, no details."""
    (served.boot_folder / "deployer/d1/initrd").unlink()
    assert served.call("GET", f"/efi/{served.ticket}.efi").status_code == 503


def test_firmware_without_forward_secrecy(served: ServedOverTls) -> None:
    """The firmware of Debian 12 (OVMF 2022.11) offers TLS 1.2 with RSA key exchange alone, and is served."""
    context = ssl.create_default_context(cafile=str(served.ca))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES256-GCM-SHA384")
    plain = socket.create_connection(("127.0.0.1", served.port), timeout=600)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        assert secured.cipher() == ("AES256-GCM-SHA384", "TLSv1.2", 256)


def test_a_client_without_a_key_holds_a_place(tmp_path: Path) -> None:
    """Connections count from their first byte on: one address cannot hold more by keeping TLS waiting."""
    with serving(tmp_path, ConnectionLimits(shake_s=600, per_host=3)) as served:
        waiting = [socket.create_connection(("127.0.0.1", served.port), timeout=600) for _ in range(3)]
        with socket.create_connection(("127.0.0.1", served.port), timeout=600) as fourth:
            assert _is_closed(fourth)
        waiting.pop().close()
        for one in waiting:
            one.close()
        assert served.call("HEAD", f"/efi/{served.ticket}.efi").status_code == 200


def test_a_client_without_a_key_is_dropped(tmp_path: Path) -> None:
    """After the time that TLS has."""
    with (
        serving(tmp_path, ConnectionLimits(shake_s=1)) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=600) as silent,
    ):
        assert _is_closed(silent)


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
