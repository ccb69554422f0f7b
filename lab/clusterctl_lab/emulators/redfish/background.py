"""What a BMC does after it has answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Background:
    """The tasks of one BMC; none outlives `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Continue with `work`; its exceptions go to the log."""
        task = asyncio.create_task(work, name=f"{what} {self._name}")
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s failed", task.get_name(), exc_info=task.exception())
