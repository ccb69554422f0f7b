"""The installer service as a process: started, answered, lost in every way, started again, ended with the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from clusterctl.edges.pxe import service_process
from clusterctl.edges.pxe.addresses import listen
from clusterctl.edges.pxe.attempt import BootFiles, InstallAttempt
from clusterctl.edges.pxe.attempt_store import AttemptStore, start_ticket
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.channel import POST_BYTES, Setup
from clusterctl.edges.pxe.exchange import ChannelTimeouts
from clusterctl.edges.pxe.service_process import ProcessTimes, ServiceProcess
from clusterctl.fleet.errors import EnvironmentBrokenError, InstallerUnavailableError
from tests.edges.pxe.kit import HELLO, MAC, SERIAL, TickingClock, armed
from tests.edges.pxe.tls_kit import site_files
from tests.formats.test_unified_kernel import stub
from tests.processes import gone, status_of

LONG_S = 120
TIMES = ProcessTimes(again_s=0.1, channel=ChannelTimeouts(ping_s=0.2, hang_s=10.0))
BASE = "http://192.0.2.1:8080"


@dataclass(frozen=True)
class Running:
    service: ServiceProcess
    attempts: AttemptStore
    attempt: InstallAttempt
    url: str

    def get(self, path: str) -> requests.Response:
        """As a machine asks: again while no one answers."""
        until = time.monotonic() + LONG_S
        while True:
            with suppress(requests.ConnectionError):
                answer = requests.get(self.url + path, timeout=LONG_S)
                if answer.status_code != 503:
                    return answer
            assert time.monotonic() < until, path
            time.sleep(0.1)

    def until_lost(self, times: int) -> str:
        eventually(lambda: len(self.service.lost) >= times, "the loss is not noticed")
        return self.service.lost[-1]


def eventually(look: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + LONG_S
    while not look():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@contextmanager
def running(folder: Path, times: ProcessTimes = TIMES, **account: int) -> Iterator[Running]:
    boot_folder = folder / "boot"
    (boot_folder / "images").mkdir(parents=True)
    (boot_folder / "images" / "x").write_bytes(b"an image")
    (boot_folder / "boot").write_bytes(b"an image")
    attempts = AttemptStore(folder / "state" / "machines")
    attempt = attempts.put(armed(), {"overlay.tar": b"a tar"})
    handlers = BootHandlers(BASE, attempts, TickingClock())
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    service = ServiceProcess(
        Setup(BASE, str(boot_folder), HELLO, **account), listener, handlers.answer, lambda: None, times
    )
    try:
        yield Running(service, attempts, attempt, url)
    finally:
        service.close()


def opened_by(pid: int) -> set[str]:
    """What the process has open; a connection may be closed between the listing and the look at it."""
    found = set()
    for number in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(number.readlink()))
    return found


def the_whole_service(found: Running) -> None:
    token = found.attempt.token
    assert found.get("/boot.ipxe").text.startswith("#!ipxe\n")
    script = found.get(f"/boot/{MAC}.ipxe?serial={SERIAL}").text
    assert start_ticket(token) in script
    started = found.get(f"/start/{start_ticket(token)}.ipxe?mac={MAC}&serial={SERIAL}")
    assert "kernel" in started.text
    assert found.get(f"/t/{token}/probe.sh").text == HELLO
    assert found.get(f"/t/{token}/overlay.tar").content == b"a tar"
    assert found.get(f"/t/{token}/files/images/x").content == b"an image"
    part = requests.get(found.url + "/files/boot", headers={"Range": "bytes=3-"}, timeout=LONG_S)
    several = requests.get(found.url + "/files/boot", headers={"Range": "bytes=0-1,3-4"}, timeout=LONG_S)
    assert (part.status_code, part.content, several.status_code) == (206, b"image", 206)
    for name in POST_BYTES:
        assert requests.post(f"{found.url}/t/{'0' * 64}/{name}", data=b"x", timeout=LONG_S).status_code == 404
    assert requests.post(f"{found.url}/t/{token}/progress", data=b"x" * 5000, timeout=LONG_S).status_code == 413
    assert requests.post(f"{found.url}/t/{token}/progress", data=b"writing", timeout=LONG_S).status_code == 200
    assert requests.put(f"{found.url}/boot.ipxe", timeout=LONG_S).status_code == 405
    assert found.get("/files/../state/machines/node001.json").status_code == 404


def test_it_serves_from_a_process_of_its_own(tmp_path: Path) -> None:
    """All that a machine needs; the process has none of our files, no way to more privileges, and ends with `close`."""
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    with running(tmp_path) as found:
        the_whole_service(found)
        pid = found.service.pid
        status = status_of(pid)
        assert pid != os.getpid()
        assert status["NoNewPrivs"] == "1"
        opened = opened_by(pid)
        assert opened
        assert {name.partition(":")[0] for name in opened} <= {"socket", "pipe", "anon_inode"}
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert [line.split()[4:6] for line in limits.splitlines() if "core file" in line] == [["0", "0"]]
    os.close(secret)
    assert gone(pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take another account")
def test_it_has_an_account_of_its_own(tmp_path: Path) -> None:
    """With one: no capability, no group of ours, and no more of the disk than the boot folder."""
    with running(tmp_path, user=65534, group=65534) as found:
        the_whole_service(found)
        pid = found.service.pid
        status = status_of(pid)
        assert status["Uid"].split() == ["65534"] * 4
        assert status["Gid"].split() == ["65534"] * 4
        assert status["Groups"].split() == []
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert Path(f"/proc/{pid}/root").readlink() == tmp_path / "boot"


def test_killed_it_is_started_again(tmp_path: Path) -> None:
    """Twice; the loss is reported with its reason, the attempt stays as it is, and machines are served on."""
    with running(tmp_path) as found:
        before = found.attempts.find("node001")
        for times in (1, 2):
            killed = found.service.pid
            os.kill(killed, signal.SIGKILL)
            assert "killed by signal 9" in found.until_lost(times)
            assert found.get("/boot.ipxe").status_code == 200
            assert found.service.pid != killed
            eventually(lambda: _serves(found.service), "it serves, but is held for lost")
        assert found.attempts.find("node001") == before
        the_whole_service(found)


def test_hanging_it_is_replaced(tmp_path: Path) -> None:
    """It is alive and answers nothing: after the limit it is killed, and another one serves."""
    times = ProcessTimes(again_s=0.1, channel=ChannelTimeouts(ping_s=0.1, hang_s=3.0))
    with running(tmp_path, times) as found:
        before, hung = found.attempts.find("node001"), found.service.pid
        os.kill(hung, signal.SIGSTOP)
        assert "has not answered for 3 s" in found.until_lost(1)
        assert found.get("/boot.ipxe").status_code == 200
        assert gone(hung)
        assert found.attempts.find("node001") == before


FAKE = """
import json, socket, struct, sys, time
channel = socket.socket(fileno=int(sys.argv[2]))
def send(message):
    content = json.dumps(message).encode() if not isinstance(message, bytes) else message
    channel.sendall(struct.pack(">I", len(content)) + content)
channel.recv(1 << 16)
send({"pong": True})
"""
CALL = (
    '{"id": 1, "kind": "done", "token": "", "mac": "", "serial": "", "name": "", "host": "", "body": ""}',
    '{"id": 1e400, "kind": "boot", "token": "", "mac": "", "serial": "", "name": "", "host": "", "body": ""}',
    '{"id": 1, "kind": "boot", "token": "\\ud800", "mac": "", "serial": "", "name": "", "host": "", "body": ""}',
    f'{{"id": 1, "kind": "boot", "token": "{"0" * 300}", "mac": "", "serial": "", "name": "", "host": "", "body": ""}}',
)
HOSTILE = {
    "ends": "",
    "a huge message": "channel.sendall(struct.pack('>I', 1 << 31))",
    "garbage": "channel.sendall(bytes(range(256)) * 4096)",
    "no JSON": "send(b'nonsense')",
    "deep JSON": "send(b'[' * 1000000)",
    "huge digits": "send(b'1' * 1000000)",
    "a call of the run's": "send({'ping': True})",
    **{f"call {index}": f"send({call.encode()!r})" for index, call in enumerate(CALL)},
}


@pytest.mark.parametrize("deed", HOSTILE)
def test_garbage_on_the_channel_ends_that_process_alone(
    deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a hijacked service sends: it is ended, the reason has none of its text, no attempt changes."""
    monkeypatch.setattr(service_process, "PROGRAM", (sys.executable, "-I", "-c", FAKE + HOSTILE[deed]))
    with running(tmp_path) as found:
        before = found.attempts.find("node001")
        reason = found.until_lost(1)
        assert reason.startswith("it ")
        assert "nonsense" not in reason
        assert found.attempts.find("node001") == before
        monkeypatch.setattr(service_process, "PROGRAM", ORIGINAL)
        the_whole_service(found)


ORIGINAL = service_process.PROGRAM


def test_a_service_that_reads_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks and asks, and takes no reply: the run does not wait for it for ever, nor grow."""
    call = {"kind": "boot", "token": "", "mac": MAC, "serial": SERIAL, "name": "", "host": "", "body": ""}
    deed = f"[send({{**{call}, 'id': n}}) for n in range(1 << 30)]"
    monkeypatch.setattr(service_process, "PROGRAM", (sys.executable, "-I", "-c", FAKE + deed))
    with running(tmp_path, ProcessTimes(channel=ChannelTimeouts(0.2, 1.0))) as found:
        assert found.until_lost(1) in ("it has not read for 1 s", "it has not answered for 1 s")


def test_its_start_may_take_longer_than_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine: what bounds the first answer is the time of a start. Lost later, it counts as started."""
    slow = FAKE.replace("channel.recv", "time.sleep(1); channel.recv")
    monkeypatch.setattr(service_process, "PROGRAM", (sys.executable, "-I", "-c", slow))
    with running(tmp_path, ProcessTimes(channel=ChannelTimeouts(0.1, 0.2, LONG_S))) as found:
        assert found.until_lost(1).startswith("it ")


def test_one_that_never_starts_is_the_controllers_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the last line of what it printed; no process stays."""
    monkeypatch.setattr(service_process, "PROGRAM", (sys.executable, "-I", "-c", "raise SystemExit('no module')"))
    with pytest.raises(EnvironmentBrokenError, match="exit status 1: no module"), running(tmp_path):
        pass


def test_while_it_is_lost_the_run_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the one by which the install step waits for its installer; it names the reason."""
    with running(tmp_path) as found:
        monkeypatch.setattr(service_process, "PROGRAM", (sys.executable, "-I", "-c", "raise SystemExit('ill')"))
        os.kill(found.service.pid, signal.SIGKILL)
        found.until_lost(2)
        with pytest.raises(InstallerUnavailableError, match=r"installer service lost: it has ended .*ill"):
            found.service.check()
        monkeypatch.setattr(service_process, "PROGRAM", ORIGINAL)
        found.get("/boot.ipxe")
        eventually(lambda: _serves(found.service), "it does not come back")


def _serves(service: ServiceProcess) -> bool:
    try:
        service.check()
    except InstallerUnavailableError:
        return False
    return True


RUN = """
import os, sys, time
from pathlib import Path
from tests.edges.pxe.test_service_process import running
account = {"user": 65534, "group": 65534} if os.geteuid() == 0 and sys.argv[2] == "True" else {}
with running(Path(sys.argv[1]), **account) as found:
    print(found.service.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("own_account", [False, True])
def test_it_ends_with_a_killed_run(tmp_path: Path, stopped: bool, own_account: bool) -> None:
    """SIGKILL to the run: the service is gone, also one that hangs, and one of another user."""
    argv = [sys.executable, "-c", RUN, str(tmp_path), str(own_account)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        if stopped:
            os.kill(pid, signal.SIGSTOP)
        run.kill()
        eventually(lambda: gone(pid), "the service outlives its run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives the service an account")
def test_over_tls_the_whole_service_needs_no_file_of_the_key(tmp_path: Path) -> None:
    """As another user within the boot folder: firmware's program and the deployer's requests, over TLS; the key is in no
    argument, no environment and no open file.
    """
    files = site_files(tmp_path / "tls", "127.0.0.1")
    tls = files.read("127.0.0.1")
    deployer = tmp_path / "boot/deployer/d1"
    deployer.mkdir(parents=True)
    for name, content in (("stub.efi", stub()), ("vmlinuz", b"kernel"), ("initrd", b"initrd")):
        (deployer / name).write_bytes(content)
    for folder in (tmp_path / "boot", deployer.parent, deployer):
        folder.chmod(0o755)
    boot = BootFiles("deployer/d1/vmlinuz", "deployer/d1/initrd", "quiet", "deployer/d1/stub.efi")
    attempts = AttemptStore(tmp_path / "state" / "machines")
    attempt = attempts.put(armed(boot=boot), {})
    setup = Setup(BASE, str(tmp_path / "boot"), HELLO, 4, 65534, 65534, tls.certificate, tls.private_key)
    listener = listen("127.0.0.1", 0)
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    service = ServiceProcess(setup, listener, BootHandlers(BASE, attempts, TickingClock()).answer, lambda: None, TIMES)
    try:
        for path, size in ((f"/efi/{start_ticket(attempt.token)}.efi", 1000), (f"/t/{attempt.token}/probe.sh", 10)):
            answer = requests.get(url + path, verify=str(files.ca), timeout=LONG_S)
            assert answer.status_code == 200
            assert len(answer.content) > size
        assert status_of(service.pid)["Uid"].split()[0] == "65534"
        kept = Path(f"/proc/{service.pid}")
        assert b"PRIVATE" not in (kept / "cmdline").read_bytes() + (kept / "environ").read_bytes()
        assert not any("memfd" in name for name in opened_by(service.pid))
    finally:
        service.close()
