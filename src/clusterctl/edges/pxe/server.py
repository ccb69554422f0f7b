"""The HTTP service on its address, in a thread of the running command."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn
from starlette.applications import Starlette

from clusterctl.fleet.errors import EnvironmentBrokenError

SILENT_S = 90
"""Seconds after which a connection is dropped whose other end acknowledges nothing: a machine that lost its power in
the midst of a download does not keep its place."""
START_S = 60.0
FAREWELL_S = 3


class Server:
    """Serves until `close`. Raises `EnvironmentBrokenError` where the address cannot be had."""

    def __init__(self, app: Starlette, address: str, port: int) -> None:
        self._socket = listen(address, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            access_log=False,  # tokens stand in paths
            log_config=None,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=FAREWELL_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="pxe-http", daemon=True)
        self._thread.start()
        self._await_start(address)

    def close(self) -> None:
        """Answer what is being asked, for a few seconds; a machine whose download is cut off asks again."""
        self._server.should_exit = True
        self._thread.join(4 * FAREWELL_S)
        self._socket.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _await_start(self, address: str) -> None:
        until = time.monotonic() + START_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise EnvironmentBrokenError(
                    "the HTTP service did not start", where=f"{address}:{self.port}", remedy="run it again with -v"
                )
            time.sleep(0.02)


def listen(address: str, port: int) -> socket.socket:
    """A listening socket; port 0: any that is free."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)  # its connections inherit it
        sock.bind((address, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise EnvironmentBrokenError(
            f"cannot serve there: {error.strerror}",
            where=f"{address}:{port}",
            remedy="give provisioning an address of this controller and a port that nobody uses",
        ) from None
    return sock
