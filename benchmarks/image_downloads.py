"""How fast the PXE's HTTP service gives an image to many machines at once, and what it costs the controller.

    python -m benchmarks.image_downloads [--mebibytes 512] [--rounds 3]

One server in a process of its own, clients in threads of this one, over loopback, the file in the page cache. For
comparison, in the same minute: `python -m http.server`, which sends a file with the standard library alone. Clients
take processor time of the same machine, so the server's own is printed as well.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

from clusterctl.edges.pxe.addresses import listen
from clusterctl.edges.pxe.app import AppSettings, build
from clusterctl.edges.pxe.channel import Call, ChannelReply
from clusterctl.edges.pxe.server import server

ADDRESS, IMAGE = "127.0.0.1", "images/x/1/rootfs.tar.zst"
CLIENTS = (1, 8, 16)
MIB = 1 << 20


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@dataclass(frozen=True, slots=True)
class Rate:
    """MiB a second to all clients together; the server's seconds of processor a GiB."""

    mib_s: float
    cpu_s_per_gib: float


class Permitting:
    """A run in which every token is a running attempt's."""

    async def ask(self, call: Call) -> ChannelReply:
        del call
        return ChannelReply(200)


def ours(folder: Path, _state: Path, pipe: Connection) -> None:
    """The installer service's server, until the other end sends a line."""
    settings = AppSettings(f"http://{ADDRESS}", folder, "", downloads_at_once=max(CLIENTS))
    web, listener = server(build(settings, Permitting())), listen(ADDRESS, 0)
    thread = threading.Thread(target=web.run, args=([listener],))
    thread.start()
    _measured(pipe, listener.getsockname()[1])
    web.should_exit = True
    thread.join()


def plain(folder: Path, _state: Path, pipe: Connection) -> None:
    server = ThreadingHTTPServer((ADDRESS, 0), partial(_Quiet, directory=str(folder)))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever)
        _measured(pipe, server.server_address[1])
        server.shutdown()


def _measured(pipe: Connection, port: int) -> None:
    """Print the port, then the processor time so far at each question, until the end of input."""
    pipe.send(port)
    while pipe.recv():
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(used.ru_utime + used.ru_stime)


@contextmanager
def served(
    by: Callable[[Path, Path, Connection], None], folder: Path, state: Path
) -> Iterator[tuple[int, Callable[[], float]]]:
    """The port, and a function that reads the server's processor seconds."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=by, args=(folder, state, there))
    process.start()

    def used() -> float:
        here.send(True)
        return float(here.recv())

    try:
        yield int(here.recv()), used
    finally:
        here.send(False)
        process.join()


def fetch(port: int, path: str) -> int:
    """Bytes of the file, as they came."""
    connection = http.client.HTTPConnection(ADDRESS, port)
    connection.request("GET", path)
    answer = connection.getresponse()
    if answer.status != http.HTTPStatus.OK:
        raise SystemExit(f"{path}: {answer.status}")
    buffer, total = bytearray(MIB), 0
    while got := answer.readinto(buffer):
        total += got
    connection.close()
    return total


def measured(port: int, path: Callable[[int], str], clients: int, used: Callable[[], float]) -> Rate:
    """Measure one round; `path` returns where a client asks: each machine has a token of its own."""
    before, begin = used(), time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        total = sum(pool.map(lambda client: fetch(port, path(client)), range(clients)))
    seconds = time.monotonic() - begin
    return Rate(total / MIB / seconds, (used() - before) / (total / (1 << 30)))


def best(rates: Sequence[Rate]) -> Rate:
    return max(rates, key=lambda rate: rate.mib_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, state = Path(name) / "boot", Path(name) / "state"
        image = folder / IMAGE
        image.parent.mkdir(parents=True)
        image.write_bytes(os.urandom(options.mebibytes * MIB))
        with served(ours, folder, state) as (port, used), served(plain, folder, state) as (bare, bare_used):
            print(f"{options.mebibytes} MiB to each client, best of {options.rounds}")
            print(f"{'clients':>8} {'MiB/s':>8} {'CPU s/GiB':>10} {'plain MiB/s':>12} {'ratio':>6}")
            for clients in CLIENTS:
                one = best(
                    [measured(port, f"/t/{{}}/files/{IMAGE}".format, clients, used) for _ in range(options.rounds)]
                )
                other = best([measured(bare, f"/{IMAGE}".format, clients, bare_used) for _ in range(options.rounds)])
                ratio = one.mib_s / other.mib_s
                print(f"{clients:>8} {one.mib_s:>8.0f} {one.cpu_s_per_gib:>10.2f} {other.mib_s:>12.0f} {ratio:>6.2f}")


if __name__ == "__main__":
    main()
