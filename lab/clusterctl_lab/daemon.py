"""The process of a lab: `python -m clusterctl_lab.daemon`, started by `lab up` in its own session.

It inherits the lab's lock and a pipe, and writes one JSON message per line to the pipe: `{"progress": …}` while it
starts, then `{"ready": true}` or `{"error": …}`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from clusterctl_lab import control
from clusterctl_lab.lock import LabLock
from clusterctl_lab.messages import Message, encode, error_message
from clusterctl_lab.requests import Requests
from clusterctl_lab.running_lab import RunningLab
from clusterctl_lab.settings import LabSettings

log = logging.getLogger(__name__)


class Starter:
    """The connection to `lab up`. After `lab up` has ended (Ctrl-C), messages only go to the log."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe

    def send(self, message: Message) -> None:
        try:
            self._pipe.write(encode(message))
            self._pipe.flush()
        except BrokenPipeError:
            log.warning("no command reads %s", message)

    def progress(self, words: str) -> None:
        log.info("%s", words)
        self.send({"progress": words})


def main() -> int:
    """Run a lab until SIGTERM; return 1 where it cannot start."""
    arguments = _arguments()
    os.set_inheritable(arguments.ready_fd, False)
    os.set_inheritable(arguments.lock_fd, False)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    settings = LabSettings.load(arguments.record)
    LabLock(settings.paths.lock, arguments.lock_fd).write_holder(os.getpid())
    with os.fdopen(arguments.ready_fd, "wb") as pipe:
        return asyncio.run(_run(settings, Starter(pipe)))


async def _run(settings: LabSettings, starter: Starter) -> int:
    """Run the lab's phases. SIGTERM ends each of them; everything that was started is closed at the end."""
    life = asyncio.create_task(_live(settings, starter), name="lab")
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, life.cancel)
    await asyncio.wait([life])
    if life.cancelled():
        log.info("ended by SIGTERM")
        return 0
    error = life.exception()
    if isinstance(error, Exception):
        log.error("the lab could not start, or broke", exc_info=error)
        starter.send(error_message(error))
        return 1
    log.info("ended")
    return 0


async def _live(settings: LabSettings, starter: Starter) -> None:
    async with RunningLab(settings, starter.progress) as cluster:
        operations = Requests(cluster)
        server = await control.serve(settings.paths.control, operations.handle)
        log.info("ready: %d machines", len(cluster.world.machines))
        starter.send({"ready": True})
        await operations.stop.wait()
        log.info("closing")
        server.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The daemon of a rehearsal lab; `clusterctl lab up` starts it.")
    parser.add_argument("--record", type=Path, required=True, help="what LabSettings.save wrote")
    parser.add_argument("--ready-fd", type=int, required=True)
    parser.add_argument("--lock-fd", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
