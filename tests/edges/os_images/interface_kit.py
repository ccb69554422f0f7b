"""The installer's HTTP interface as a machine sees it, for one machine: small, and written from the interface alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "0123456789abcdef" * 4


@dataclass
class Installer:
    """`serial`: of the one machine that may be written; `root_serial`: of the disk that may; `image`: below `boot`.

    `broken_off`: that many times a file is served only in half; `spoilt`: the announced checksum is wrong.
    """

    boot: Path
    image: str
    sha256: str
    probe: bytes
    serial: str
    root_serial: str
    overlay: bytes
    broken_off: int = 0
    spoilt: bool = False
    messages: list[tuple[str, bytes]] = field(default_factory=list)
    received: threading.Condition = field(default_factory=threading.Condition)

    def receive(self, name: str, body: bytes) -> tuple[int, bytes]:
        with self.received:
            self.messages.append((name, body))
            self.received.notify_all()
        if name != "report":
            return 200, b"thank you\n"
        lines = body.decode().splitlines()
        disks = [line.removeprefix("disk=").split("\t") for line in lines if line.startswith("disk=")]
        fitting = [disk[0] for disk in disks if disk[1] == self.root_serial]
        if f"serial={self.serial}" not in lines or len(fitting) != 1:
            return 409, b"that is another machine\n"
        size = (self.boot / self.image).stat().st_size
        checksum = "0" * 64 if self.spoilt else self.sha256
        answer = (
            f"root={fitting[0]}\ntime={int(time.time())}\nimage=/files/{self.image}\nsha256={checksum}\nsize={size}\n"
            "hostname=node-1\n"
        )
        return 200, answer.encode()

    def last(self, name: str) -> bytes | None:
        return next((body for what, body in reversed(self.messages) if what == name), None)

    def wait_for(self, names: set[str], seconds: float) -> str:
        """Return the first of `names` that the machine reports; fails after `seconds` with all its reports."""

        def which() -> str:
            return next((what for what, _ in self.messages if what in names), "")

        with self.received:
            self.received.wait_for(which, seconds)
        assert which(), f"none of {sorted(names)} within {seconds:.0f} s, but {self.words()}"
        return which()

    def words(self) -> list[str]:
        return [f"{what}: {body.decode()}" for what, body in self.messages if what in {"progress", "failed", "report"}]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path.startswith("/files/"):
            self._send_file(self.server.installer.boot / self.path.removeprefix("/files/"))
        elif self.path == f"/t/{TOKEN}/probe.sh":
            self._answer(200, self.server.installer.probe)
        elif self.path == f"/t/{TOKEN}/overlay.tar":
            self._answer(200, self.server.installer.overlay)
        else:
            self._answer(404, b"there is nothing here\n")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head, token, name = self.path.rsplit("/", 2)
        known = (head, token) == ("/t", TOKEN)
        self._answer(*(self.server.installer.receive(name, body) if known else (404, b"")))

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_file(self, path: Path) -> None:
        size = path.stat().st_size
        begin = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if self.headers["Range"] else 200)
        self.send_header("Content-Length", str(size - begin))
        self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
        self.end_headers()
        end = size
        if self.server.installer.broken_off:
            self.server.installer.broken_off -= 1
            end = begin + (size - begin) // 2
        with path.open("rb") as file:
            file.seek(begin)
            while begin < end and (block := file.read(min(1 << 20, end - begin))):
                self.wfile.write(block)
                begin += len(block)
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, installer: Installer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.installer = installer


@contextmanager
def serving(installer: Installer) -> Iterator[int]:
    """The port on the loopback address."""
    server = _Server(installer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
