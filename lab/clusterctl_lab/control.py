"""The lab's control socket (mode 0600): both ends of it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl_lab.messages import LIMIT, Message, decode, encode, error_message, raise_error

log = logging.getLogger(__name__)

ANSWER_SECONDS = 60.0
Handler = Callable[[Message], Awaitable[Message]]


async def serve(path: Path, handler: Handler) -> asyncio.Server:
    """Answer requests on `path` one by one per connection, until closed. Its folder must be private (0700) already."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(encode(await _answer(handler, line)))
                await writer.drain()
        except ConnectionError as error:
            log.info("control: the other end went away: %s", error)
        finally:
            writer.close()

    server = await asyncio.start_unix_server(connection, path, limit=LIMIT)
    os.chmod(path, 0o600)  # noqa: PTH101 — one system call, once
    return server


async def _answer(handler: Handler, line: bytes) -> Message:
    try:
        return await handler(decode(line))
    except ClusterctlError as error:
        return error_message(error)
    except Exception as error:
        log.exception("control: request failed")
        return error_message(error)


def ask(path: Path, lab: str, request: Message) -> Message:
    """Send one request to a running lab and return its answer; raise the errors that it reports."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.connect(str(path))
            connection.sendall(encode(request))
            with connection.makefile("rb") as stream:
                line = stream.readline(LIMIT)
        except PermissionError as error:
            raise EnvironmentBrokenError(
                "the lab belongs to root", where=str(path), remedy="Run the command through sudo."
            ) from error
        except (FileNotFoundError, ConnectionError) as error:
            raise not_running(lab) from error
        except TimeoutError as error:
            raise EnvironmentBrokenError(
                f"the lab does not answer within {ANSWER_SECONDS:.0f} s",
                where=str(path),
                remedy=f"Remove it: clusterctl lab down --name {lab}",
            ) from error
    if not line:
        raise EnvironmentBrokenError("the lab ended while it was asked", where=str(path), remedy="Look at its log.")
    answer = decode(line)
    raise_error(answer)
    return answer


def not_running(lab: str) -> UsageError:
    option = "" if lab == "lab" else f" --name {lab}"
    return UsageError(f"no lab named {lab} is running", where="--name", remedy=f"Start it: clusterctl lab up{option}")
