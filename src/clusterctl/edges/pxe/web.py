"""The installer service's own program: HTTP for machines on the provisioning network, without privileges.

    python -I -m clusterctl.edges.pxe.web LISTENER CHANNEL

Both are numbers of inherited sockets: the listening one, and the channel to the run. As root it shuts itself into the
boot folder and takes the account that the run names, before it reads anything from the network. It ends when the
channel does, and the kernel kills it with the run.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401
import ctypes
import encodings.idna  # noqa: F401
import itertools
import json
import os
import resource
import signal
import socket
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio._backends._asyncio
import anyio.abc
import uvicorn.lifespan.off  # noqa: F401 - this and the others are used when their files are out of sight

from clusterctl.edges.pxe.app import AppSettings, build
from clusterctl.edges.pxe.boot_certificate import service_context
from clusterctl.edges.pxe.channel import (
    LENGTH,
    NOT_NOW,
    PING,
    PONG,
    Call,
    ChannelReply,
    Setup,
    call_frame,
    frame,
    reply_of,
)
from clusterctl.edges.pxe.server import ConnectionLimits, server

USUAL = ConnectionLimits()
ASK_S = 60.0
ASKED_AT_ONCE = 64
OPEN_FILES = 2 * USUAL.at_once
"""A connection and a file for each machine that loads one."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
"""linux/prctl.h"""


class RunChannel:
    """Meets `Run`: sends each call to the run, and gives each reply to the request that waits for it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[ChannelReply]] = {}
        self._slots = asyncio.Semaphore(ASKED_AT_ONCE)

    async def ask(self, call: Call) -> ChannelReply:
        """Return the run's reply; `NOT_NOW` where there is none in time."""
        number = next(self._numbers)
        try:
            async with asyncio.timeout(ASK_S), self._slots:
                self._waiting[number] = asyncio.get_running_loop().create_future()
                self._writer.write(call_frame(number, call))
                await self._writer.drain()
                return await self._waiting[number]
        except (TimeoutError, OSError):
            return NOT_NOW
        finally:
            self._waiting.pop(number, None)

    async def receive(self) -> None:
        """Receive the run's messages until the channel ends."""
        while True:
            try:
                message = await _next(self._reader)
            except (asyncio.IncompleteReadError, OSError):
                return
            if PING in message:
                self._writer.write(frame({PONG: True}))
                continue
            waiting = self._waiting.get(message["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(reply_of(message))


async def _next(reader: asyncio.StreamReader) -> Any:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return json.loads(await reader.readexactly(length))


async def serve(
    listener: socket.socket,
    channel: socket.socket,
    setup: Setup,
    limits: ConnectionLimits = USUAL,
    context: ssl.SSLContext | None = None,
) -> None:
    """Serve until the channel ends, over TLS with a `context`."""
    reader, writer = await asyncio.open_connection(sock=channel)
    run = RunChannel(reader, writer)
    app = AppSettings(setup.base, Path(setup.boot_folder), setup.probe, setup.downloads_at_once)
    web = server(build(app, run), limits, context)
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    receiving = asyncio.create_task(run.receive())
    await asyncio.wait({serving, receiving}, return_when=asyncio.FIRST_COMPLETED)
    web.should_exit = True
    await serving
    receiving.cancel()
    writer.close()


def received_setup(channel: socket.socket) -> Setup:
    """Return the run's first message. Raises `EOFError` where the run has ended."""
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    return Setup(**json.loads(_exactly(channel, length)))


def context_of(setup: Setup) -> ssl.SSLContext | None:
    """Return the context of TLS; None where the service is plain HTTP. It needs /proc, which the service loses."""
    return service_context(setup.certificate, setup.private_key) if setup.certificate else None


def _exactly(channel: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        chunk = channel.recv(size - len(content))
        if not chunk:
            raise EOFError
        content += chunk
    return content


def confine(setup: Setup) -> Setup:
    """Give up what the service does not need, for good; return the setup as it is seen from within.

    With an account: the boot folder is all of the disk that is left, and no capability remains. Without one the service
    keeps the account of the run. In both cases: it gains no privileges by any program, writes no file, leaves no core
    dump, cannot be traced by other programs of its account, and is killed when the run ends.
    """
    for module in (anyio, anyio.abc):
        for name in dir(module):
            getattr(module, name)  # imports what is imported at first use
    os.umask(0o077)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, OPEN_FILES), most))
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if setup.user is not None and setup.group is not None:
        os.chroot(setup.boot_folder)
        os.chdir("/")
        os.setgroups([])
        os.setresgid(setup.group, setup.group, setup.group)
        os.setresuid(setup.user, setup.user, setup.user)
        setup = replace(setup, boot_folder="/")
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the kernel forgets it when the user changes
    return setup


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def main() -> None:
    listener, channel = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    try:
        setup = received_setup(channel)
    except EOFError:
        return  # the run has ended already
    context = context_of(setup)
    asyncio.run(serve(listener, channel, confine(setup), context=context))


if __name__ == "__main__":
    main()
