"""Stands between a journal and its PostgreSQL server, and cuts the line around a `COMMIT`, once."""

from __future__ import annotations

import enum
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class Cut(enum.Enum):
    """`REQUEST`: the server never receives the `COMMIT`. `ANSWER`: it commits, and the client never learns it."""

    REQUEST = "request"
    ANSWER = "answer"


class CuttingProxy:
    """Passes every connection on until `cut` is set; then the next `COMMIT` costs its connection. Once.

    `meanwhile` is called when the server has committed, before the other side sees that its line is cut.
    """

    def __init__(self, server: Path) -> None:
        self._server = server
        self.cut: Cut | None = None
        self.cuts = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed: the test is over
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server / SOCKET))
            while True:
                readable, _, _ = select.select([client, server], [], [])
                for end in readable:
                    data = end.recv(65536)
                    if not data or (end is client and self._cuts(data, server)):
                        return
                    (server if end is client else client).sendall(data)

    def _cuts(self, data: bytes, server: socket.socket) -> bool:
        cut = self.cut if b"COMMIT" in data else None
        if cut is None:
            return False
        self.cut, self.cuts = None, self.cuts + 1
        if cut is Cut.ANSWER:
            server.sendall(data)
            server.recv(65536)
            self.meanwhile()
        return True


@contextmanager
def cutting_proxy(url: str, folder: Path) -> Iterator[tuple[CuttingProxy, str]]:
    """The proxy before the server of `url`, and the URL that leads through it."""
    head, _, server = url.partition("?host=")
    proxy = CuttingProxy(Path(server))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen()
        serving = threading.Thread(target=proxy.serve, args=(listener,), daemon=True)
        serving.start()
        yield proxy, f"{head}?host={folder}"
        listener.shutdown(socket.SHUT_RDWR)
