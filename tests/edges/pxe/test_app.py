"""The HTTP interface: the answers to each message of a machine, and what it never answers."""

from __future__ import annotations

import os
import re
import socket
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from clusterctl.edges.pxe.attempt import AttemptState, BootFiles, InstallAttempt, InstallPayload
from clusterctl.edges.pxe.attempt_store import start_ticket
from clusterctl.edges.pxe.channel import POST_BYTES
from clusterctl.edges.pxe.files import Downloads, locate
from clusterctl.edges.pxe.server import ConnectionLimits
from clusterctl.fleet.hardware.disk_contract import DiskContract
from clusterctl.fleet.hardware.sku import RootDisk
from tests.edges.pxe.kit import HELLO, KEY, MAC, OTHER_KEY, ROOT_DISK, SERIAL, ServedAttempts, report, serving

LIMITS = ConnectionLimits(per_host=8)


def test_a_whole_install(served: ServedAttempts) -> None:
    """From the boot script to the last word: each word is answered, each leaves its milestone, in order."""
    script = served.boot(MAC.replace(":", "-"))
    assert "kernel --name vmlinuz http://192.0.2.1:8080/files/deployer/d1/vmlinuz" in script
    assert "BOOTIF=01-02-00-00-00-00-01" in script
    assert served.now.state is AttemptState.SEEN
    assert served.get(f"/t/{served.attempt.token}/probe.sh").text == HELLO
    answer = served.post("report", report())
    assert answer.status_code == 200
    lines = dict(line.split("=", 1) for line in answer.text.splitlines())
    assert lines.keys() == {"root", "time", "image", "sha256", "size", "hostname"}
    assert lines["root"] == "/dev/nvme0n1"
    assert lines["image"] == f"/t/{served.attempt.token}/files/images/debian-12/d1/rootfs.tar.zst"
    assert served.get(f"/t/{served.attempt.token}/overlay.tar").content == b"a tar"
    assert served.post("progress", "writing the image").status_code == 200
    assert served.post("host-key", f"{KEY} root@node001\n").status_code == 200
    assert served.post("log", b"\x1f\x8b...").status_code == 200
    assert served.post("done").status_code == 200
    now = served.now
    assert now.state is AttemptState.DONE
    assert now.host_key == KEY
    assert now.root == "/dev/nvme0n1"
    assert now.address == "127.0.0.1"
    assert [drive.serial for drive in now.drives or ()] == [ROOT_DISK, "DATA1"]
    assert [item.text for item in now.milestones] == [
        "its firmware booted over the network, by 02:00:00:00:00:01",
        f"its serial is right; the OS goes to /dev/nvme0n1 {ROOT_DISK} QEMU NVMe Ctrl 480 GB",
        "writing the image",
        "it made its SSH host key",
        "the OS is on its disk",
    ]
    assert served.attempts.log(now) == b"\x1f\x8b..."


def test_done_is_final(served: ServedAttempts) -> None:
    """After its last word a machine may repeat it and bring its log; all else is 404, and it boots from its disk."""
    served.post("report", report())
    served.post("done")
    assert served.post("done").status_code == 200
    assert served.post("log", "late").status_code == 200
    for name in ("report", "progress", "host-key"):
        assert served.post(name, report()).status_code == 404, name
    assert served.post("failed", "no").status_code == 200
    assert served.now.state is AttemptState.DONE
    for name in ("probe.sh", "overlay.tar"):
        assert served.get(f"/t/{served.attempt.token}/{name}").status_code == 404
    script = served.boot()
    assert "kernel" not in script
    assert "node001 is installed" in script
    assert script.endswith("exit 1\n")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (report(serial="SN0002"), "reports serial SN0002, its BMC SN0001"),
        (report(disks=("DATA1", "DATA2")), "the machine sees no drive with the root disk's serial"),
        (report(disks=(ROOT_DISK, ROOT_DISK)), "the machine sees 2 drives with the root disk's serial"),
    ],
)
def test_the_wrong_machine_is_not_written(served: ServedAttempts, message: str, why: str) -> None:
    """Another serial, or none or two root disks: 409 with one line why, and the token is dead."""
    answer = served.post("report", message)
    assert answer.status_code == 409
    assert why in answer.text
    assert answer.text.count("\n") == 1
    assert served.now.state is AttemptState.REFUSED
    assert served.post("report", report()).status_code == 404
    assert served.get(f"/t/{served.attempt.token}/overlay.tar").status_code == 404


BY_HOST = RootDisk(chosen_by="host", max_bytes=600_000_000_000)


def test_a_rule_names_the_root_disk_among_what_the_machine_sees(served: ServedAttempts) -> None:
    """The drive that it names is the contract from then on: the same report again is fine, another drive is not."""
    served.attempts.change("node001", lambda now: replace(now, disk=DiskContract("", "", BY_HOST)))
    small_and_large = report().replace("DATA1\teui.0000000000000001\t480000000000", "DATA1\teui.1\t3840000000000")
    assert served.post("report", small_and_large).status_code == 200
    assert (served.now.root, served.now.disk.serial) == ("/dev/nvme0n1", ROOT_DISK)
    assert served.post("report", small_and_large).status_code == 200
    another = report(disks=("OTHER", "DATA1")).replace("eui.0000000000000000", "eui.9")
    assert served.post("report", another).status_code == 409


def test_a_rule_that_names_two_drives_writes_none(served: ServedAttempts) -> None:
    """Refused, with all that the machine sees and what the operator has to decide."""
    served.attempts.change("node001", lambda now: replace(now, disk=DiskContract("", "", BY_HOST)))
    assert served.post("report", report()).status_code == 409
    assert served.now.state is AttemptState.REFUSED
    assert "/dev/nvme1n1 DATA1" in served.now.reason
    assert "one_of: 2" in served.now.decide


def test_another_machine_gets_no_script(served: ServedAttempts) -> None:
    """The card is right and the serial that SMBIOS reports is not: no installer, no token. A client that knows the card can ask
    so: the attempt stays as it is, and the request is kept with it.
    """
    before = served.now
    script = served.boot(serial="SN0099")
    assert "kernel" not in script
    assert served.attempt.token not in script
    assert served.now == before
    assert (
        served.attempts.noted(served.now)
        == f"a machine with {MAC} asked for its boot script and reported serial SN0099"
    )


@pytest.mark.parametrize("asked", ["", "?serial=", "?serial=%20", f"?uuid={SERIAL}", "?serial=SN0099"])
def test_a_card_without_its_serial_gets_no_token(served: ServedAttempts, asked: str) -> None:
    """No ticket, and even with the ticket no script: so it reads no overlay, and ends no attempt."""
    served.attempts.change("node001", lambda now: replace(now, boot=_with_token(now)))
    token, ticket = served.attempt.token, start_ticket(served.attempt.token)
    assert token in served.boot()  # the machine itself; it has its script, and the attempt is SEEN
    script = served.get(f"/boot/{MAC}.ipxe{asked}").text
    assert script.endswith("exit 1\n")
    assert ticket not in script
    assert token not in script
    assert "serial" in served.attempts.noted(served.now)
    separator = "&" if asked else "?"
    started = served.get(f"/start/{ticket}.ipxe{asked}{separator}mac={MAC}").text
    assert token not in started
    assert "kernel" not in started


def _with_token(attempt: InstallAttempt) -> BootFiles:
    return BootFiles("deployer/d1/vmlinuz", "deployer/d1/initrd", f"clusterctl.token={attempt.token} quiet")


def test_a_request_without_a_serial_changes_nothing(served: ServedAttempts) -> None:
    ticket = start_ticket(served.attempt.token)
    before = served.now
    served.get(f"/boot/{MAC}.ipxe")
    served.get(f"/start/{ticket}.ipxe?mac={MAC}")
    assert served.now == before
    assert served.attempts.noted(before) == f"a machine with {MAC} asked for its boot script and reported no serial"
    assert "kernel" in served.boot()


def test_no_request_without_the_token_changes_an_attempt(served: ServedAttempts) -> None:
    """Of all that the service answers: only what comes by the token is recorded."""
    served.post("report", report())
    before, wrong = served.now, "0" * 64
    for path in (
        f"/boot/{MAC}.ipxe?serial={SERIAL}",
        f"/boot/{MAC}.ipxe?serial=SN0099",
        "/boot.ipxe",
        "/files/images/x",
    ):
        served.get(path)
    assert served.get(f"/start/{wrong}.ipxe?mac={MAC}&serial={SERIAL}").status_code == 404
    for path in ("probe.sh", "overlay.tar", "files/images/x"):
        assert served.get(f"/t/{wrong}/{path}").status_code == 404
    for name in POST_BYTES:
        assert served.post(name, "x", token=wrong).status_code == 404
    assert served.now == before


def test_no_url_of_the_boot_holds_the_token(served: ServedAttempts) -> None:
    """IPXE prints the URLs that it loads. What stands there for the token starts the installer and does nothing else, and
    not even that once the machine has reported itself.
    """
    token, ticket = served.attempt.token, start_ticket(served.attempt.token)
    script = served.get(f"/boot/{MAC}.ipxe?serial={SERIAL}").text
    assert ticket in script
    assert token not in script
    started = served.boot()
    assert token not in "".join(re.findall(r"http://[^ ]+", started))
    for name in ("probe.sh", "overlay.tar", "boot.ipxe"):
        assert served.get(f"/t/{ticket}/{name}").status_code == 404
    assert served.post("report", report(), token=ticket).status_code == 404
    for name in (ticket, f"{ticket}.txt", f"{token}.ipxe", ".ipxe"):
        assert served.get(f"/start/{name}?mac={MAC}&serial={SERIAL}").status_code == 404, name
    served.post("report", report())
    assert "kernel" not in served.get(f"/start/{ticket}.ipxe?mac={MAC}&serial={SERIAL}").text


def test_a_strange_card_boots_on(served: ServedAttempts) -> None:
    for name in ("02-00-00-00-00-99.ipxe", "nonsense.ipxe", "02-00-00-00-00-01.txt"):
        text = served.get(f"/boot/{name}?serial={SERIAL}").text
        assert "kernel" not in text
        assert text.endswith("exit 1\n")
    assert served.now.state is AttemptState.ARMED


def test_a_boot_in_the_midst_of_writing_ends_the_attempt(served: ServedAttempts) -> None:
    """Its power was cut: it is not given the same installer again, and the next run knows at once."""
    served.post("report", report())
    assert "kernel" not in served.boot(serial="")
    assert served.now.state is AttemptState.WRITING  # a machine without a serial changes nothing
    assert "kernel" not in served.boot()
    assert served.now.state is AttemptState.FAILED
    assert "while its disk was written" in served.now.reason


def test_lost_answers_are_asked_for_again(served: ServedAttempts) -> None:
    """The same report and the same host key twice are fine; another host key, or another root disk, is not."""
    first = served.post("report", report())
    again = served.post("report", report())
    assert [line for line in again.text.splitlines() if not line.startswith("time=")] == [
        line for line in first.text.splitlines() if not line.startswith("time=")
    ]
    assert served.post("host-key", KEY).status_code == 200
    assert served.post("host-key", KEY).status_code == 200
    assert served.post("host-key", OTHER_KEY).status_code == 409
    assert served.now.host_key == KEY
    assert served.post("report", report(disks=("DATA1", ROOT_DISK))).status_code == 409
    assert served.now.state is AttemptState.REFUSED


def test_a_flood_of_wrong_requests_writes_one_note(served: ServedAttempts) -> None:
    """Each note is written to the disk, which would hold up all machines."""
    for number in range(5):
        assert "serial is another one" in served.boot(serial=f"WRONG{number}")
    assert "WRONG0" in served.attempts.noted(served.attempt)


def asked_from(address: str, served: ServedAttempts, path: str, body: str | None = None) -> int:
    """Return the status of a request from this address of loopback."""
    with requests.Session() as session:
        session.mount("http://", _From(address))
        asked = session.get if body is None else partial(session.post, data=body)
        return asked(served.base + path, timeout=600).status_code


class _From(HTTPAdapter):
    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *sizes: Any, **more: Any) -> None:
        super().init_poolmanager(*sizes, **more, source_address=(self._address, 0))


def test_another_address_gets_neither_token_nor_documents(served: ServedAttempts) -> None:
    """It has the card, the serial, the ticket, even the token: our DHCP gave the machine another address."""
    own, other = "127.0.0.9", "127.0.0.8"
    attempt = served.attempts.put(replace(served.attempt, only_from=own), {"overlay.tar": b"a tar"})
    start = f"/start/{start_ticket(attempt.token)}.ipxe?mac={MAC}&serial={SERIAL}"
    token = f"/t/{attempt.token}"
    assert asked_from(other, served, start) == 404
    assert other in served.attempts.noted(attempt)
    assert own in served.attempts.noted(attempt)
    for name in ("probe.sh", "overlay.tar", f"files/{attempt.payload.path}"):
        assert asked_from(other, served, f"{token}/{name}") == 404
    for name, body in (("report", report()), ("host-key", OTHER_KEY), ("failed", "x"), ("done", ""), ("log", "x")):
        assert asked_from(other, served, f"{token}/{name}", body) == 404
    assert served.now == attempt
    assert asked_from(own, served, start) == 200
    assert asked_from(own, served, f"{token}/overlay.tar") == 200
    assert asked_from(own, served, f"{token}/report", report()) == 200
    assert asked_from(own, served, f"{token}/host-key", KEY) == 200
    assert served.now.host_key == KEY


def test_a_distributions_installer_may_have_the_hosts_own_address(served: ServedAttempts) -> None:
    """It gets the token at the address that is reserved, and reports from the one that the host will have."""
    attempt = replace(served.attempt, only_from="127.0.0.9", payload=InstallPayload())
    served.attempts.put(attempt, {"overlay.tar": b"a tar"})
    assert (
        asked_from("127.0.0.8", served, f"/start/{start_ticket(attempt.token)}.ipxe?mac={MAC}&serial={SERIAL}") == 404
    )
    assert asked_from("127.0.0.8", served, f"/t/{attempt.token}/progress", "installs packages") == 200


def test_order_is_kept(served: ServedAttempts) -> None:
    """Nothing is done, and no key pinned, before the report was accepted; what is no key is no key."""
    assert served.post("done").status_code == 409
    assert served.post("host-key", KEY).status_code == 409
    served.post("report", report())
    for key in ("", "ssh-rsa AAAA", "ssh-ed25519 AAAA", f"{KEY}\n{OTHER_KEY}"):
        assert served.post("host-key", key).status_code == 409, key


@pytest.mark.parametrize(
    "message",
    [
        "",
        "nonsense",
        "disk=/dev/sda",
        "serial=A\nserial=B",
        "serial=A\ndisk=/dev/sda\tx\ty\tz\tm\tf",
        f"serial={SERIAL}\nclock={'9' * 5000}",
        f"serial={SERIAL}\ndisk=/dev/sda\tx\ty\t{'9' * 5000}\tm\tf",
    ],
)
def test_a_report_that_is_none(served: ServedAttempts, message: str) -> None:
    """It is not understood, so nothing is written; the machine may try again."""
    assert served.post("report", message).status_code == 409
    assert served.now.state is AttemptState.ARMED


def test_unknown_clients_receive_nothing(served: ServedAttempts) -> None:
    """Without a live token every path below /t/ is 404, with the same words."""
    answers = {
        (answer.status_code, answer.text)
        for name in ("report", "progress", "done", "log", "anything")
        for answer in [served.post(name, "x", token="0" * 64), served.get(f"/t/{'0' * 64}/{name}")]
    }
    answers |= {
        (served.get(f"/t/x/{name}").status_code, "not found\n") for name in ("probe.sh", "overlay.tar", "user-data")
    }
    assert answers == {(404, "not found\n")}
    assert served.get("/").status_code == 404


def test_too_much_is_refused(served: ServedAttempts) -> None:
    assert served.post("progress", "x" * 5000).status_code == 413
    assert served.post("log", bytes((8 << 20) + 1)).status_code == 413
    assert served.post("log", bytes(8 << 20)).status_code == 200


def test_words_are_made_plain(served: ServedAttempts) -> None:
    """Control characters, escape sequences and length of foreign words end at the service."""
    served.post("progress", "a\x1b[31mred\nb\x00" + "x" * 1000)
    assert served.now.milestones[-1].text.startswith("a[31mred b")
    assert len(served.now.milestones[-1].text) == 300


def test_files_whole_and_in_ranges(served: ServedAttempts) -> None:
    (served.boot_folder / "deployer" / "d1").mkdir(parents=True)
    (served.boot_folder / "deployer" / "d1" / "vmlinuz").write_bytes(bytes(range(256)))
    (served.boot_folder / "deployer" / "current").symlink_to("d1")
    assert served.get("/files/deployer/current/vmlinuz").content == bytes(range(256))
    part = served.get("/files/deployer/d1/vmlinuz", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, bytes(range(10, 20)))


def test_nothing_outside_the_boot_folder(served: ServedAttempts, tmp_path: Path) -> None:
    """Neither by dots, nor encoded ones, nor by a link that leads out; folders and devices are no files."""
    (tmp_path / "other").write_text("private")
    (served.boot_folder / "link").symlink_to(tmp_path / "other")
    (served.boot_folder / "folder").mkdir()
    os.mkfifo(served.boot_folder / "fifo")
    (served.boot_folder / "folder" / "file").write_text("x")
    names = ("../other", "folder/../../other", "/etc/passwd", "link", "folder", "", "fifo", "a\0b")
    for path in (*names, "folder//file", "folder/./file", "folder/../folder/file", "./folder/file", "folder/file/"):
        assert locate(served.boot_folder, path) is None, path
    for path in ("%2e%2e/other", "..%2fother", "link", "folder", "%2fetc/passwd"):
        assert served.get(f"/files/{path}").status_code == 404, path


def test_the_brake_on_images(served: ServedAttempts) -> None:
    """Beyond so many images at once: 503 and when to ask again; other files always come, and places come free again."""
    _large_image(served)
    (served.boot_folder / "vmlinuz").write_bytes(b"k")
    slow = [_image_of(served, served.another(index).token, index) for index in range(4)]
    beyond = served.get(f"/t/{served.attempt.token}/files/images/x")
    assert beyond.status_code == 503
    assert int(beyond.headers["Retry-After"]) > 0
    assert served.get("/files/vmlinuz").status_code == 200
    for answer in slow:
        answer.close()
    _until_an_image_is_sent(served)


def test_one_machine_takes_no_place_of_the_others(served: ServedAttempts) -> None:
    """Its token is sent two images at a time, from whatever addresses; the next machine is sent its own at once."""
    _large_image(served)
    token = served.another(1).token
    held = [_image_of(served, token, index) for index in range(2)]
    with one_connection(served, "127.0.0.20") as third:
        third.sendall(f"GET /t/{token}/files/images/x HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert third.recv(12) == b"HTTP/1.1 503"
    _until_an_image_is_sent(served, tries=1)
    for answer in held:
        answer.close()


def test_images_need_a_token(served: ServedAttempts) -> None:
    """Any machine of the network could take every place without one: images, links to them, and ISOs of gigabytes."""
    _large_image(served)
    (served.boot_folder / "current").symlink_to("images")
    (served.boot_folder / "noble").mkdir()
    (served.boot_folder / "noble" / "ubuntu.ISO").write_bytes(b"iso")
    for path in ("images/x", "current/x", "noble/ubuntu.ISO"):
        assert served.get(f"/files/{path}").status_code == 404, path
        reply = served.get(f"/t/{served.attempt.token}/files/{path}", headers={"Range": "bytes=0-2"})
        assert reply.status_code == 206, path


def test_a_transfer_that_is_not_read_is_ended(tmp_path: Path) -> None:
    """Its connection stays open and takes nothing: its place comes free for the next machine."""
    with serving(tmp_path, 1, ConnectionLimits(write_s=0.5)) as served:
        _large_image(served)
        with _image_of(served, served.another(1).token, 0) as held:
            _until_an_image_is_sent(served)
            with suppress(ConnectionError):
                while held.recv(1 << 20):  # ends when the service has closed, long before 256 MiB
                    pass


def _large_image(served: ServedAttempts) -> None:
    image = served.boot_folder / "images" / "x"
    image.parent.mkdir()
    with image.open("wb") as file:
        file.truncate(256 << 20)


def _image_of(served: ServedAttempts, token: str, index: int) -> socket.socket:
    """A machine of its own address that has begun to read an image."""
    client = one_connection(served, f"127.0.0.{10 + index}")
    client.sendall(f"GET /t/{token}/files/images/x HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    return client


def _until_an_image_is_sent(served: ServedAttempts, tries: int = 600) -> None:
    for _ in range(tries):
        reply = served.get(f"/t/{served.attempt.token}/files/images/x", headers={"Range": "bytes=0-9"})
        if reply.status_code == 206:
            return
        threading.Event().wait(0.1)
    pytest.fail("no place came free")


def test_an_image_has_one_name_and_one_limit(served: ServedAttempts) -> None:
    """A link to it is braked, too; a wrong token neither serves nor records anything."""
    _large_image(served)
    (served.boot_folder / "current").symlink_to("images")
    slow = [_image_of(served, served.another(index).token, index) for index in range(4)]
    assert served.get(f"/t/{served.attempt.token}/files/current/x").status_code == 503
    before = served.now
    assert served.get("/t/0123/files/images/x").status_code == 404
    assert served.now == before
    for answer in slow:
        answer.close()


@pytest.mark.parametrize(
    "sent", [b"", b"GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n", b"GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_a_head_that_does_not_arrive_frees_its_connection(tmp_path: Path, sent: bytes) -> None:
    """Nothing, half of a head, or silence after an answer: the service closes, others are served."""
    with serving(tmp_path, limits=ConnectionLimits(head_s=0.5)) as served, one_connection(served) as client:
        client.sendall(sent)
        with suppress(ConnectionError):
            while client.recv(65536):  # ends when the service closes
                pass


def test_one_address_holds_so_many_connections(tmp_path: Path) -> None:
    """The next one is dropped; places come free again."""
    with ExitStack() as stack:
        served = stack.enter_context(serving(tmp_path, limits=LIMITS))
        held = [stack.enter_context(one_connection(served)) for _ in range(LIMITS.per_host)]
        for client in held:
            client.sendall(b"GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        with one_connection(served) as beyond, suppress(ConnectionError):
            assert beyond.recv(1) == b""
        for client in held:
            client.close()
        _until_served(served)


def _until_served(served: ServedAttempts) -> None:
    for _ in range(600):
        with suppress(requests.ConnectionError):
            assert served.get("/boot.ipxe").status_code == 200
            return
        threading.Event().wait(0.1)
    pytest.fail("no place came free")


def one_connection(served: ServedAttempts, own: str = "127.0.0.1") -> socket.socket:
    port = int(served.base.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=600, source_address=(own, 0))


def test_places_are_counted() -> None:
    downloads = Downloads(3, per_token=2)
    assert [downloads.begin("a") for _ in range(3)] == [True, True, False]
    assert [downloads.begin("b") for _ in range(2)] == [True, False]
    downloads.end("a")
    assert downloads.begin("b")
    assert not downloads.begin("c")
