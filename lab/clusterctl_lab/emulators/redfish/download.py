"""Fetching an image that a client has named by its URL."""

from __future__ import annotations

import aiohttp

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.sockets import OpenSocket, factory, plain

MAX_BYTES = 256 * 2**20
TIMEOUT = aiohttp.ClientTimeout(total=120, connect=10)


async def download(url: str, opened: OpenSocket = plain) -> bytes:
    """Return the content of an HTTP or HTTPS URL; raise `EdgeError` with a message that a task may show.

    `opened` opens the socket to its host.
    """
    connector = aiohttp.TCPConnector(socket_factory=factory(opened))
    try:
        async with aiohttp.ClientSession(timeout=TIMEOUT, connector=connector) as client, client.get(url) as answer:
            if answer.status != 200:
                raise EdgeError(f"The image cannot be fetched: HTTP {answer.status}.")
            image = bytearray()
            async for chunk in answer.content.iter_chunked(2**20):
                image += chunk
                if len(image) > MAX_BYTES:
                    raise EdgeError(f"The image is larger than {MAX_BYTES >> 20} MiB.")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise EdgeError(f"The image cannot be fetched: {type(error).__name__}.") from error
    return bytes(image)
