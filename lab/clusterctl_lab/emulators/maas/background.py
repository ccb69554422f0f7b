"""Tasks that continue after an answer: at most one job and one watch per machine, and also power actions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)
Job = Coroutine[Any, Any, None]


class Background:
    """Keeps references to the tasks, so that none is lost, and cancels them all at the end."""

    def __init__(self) -> None:
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, asyncio.TimerHandle] = {}
        self._aside: set[asyncio.Task[None]] = set()

    def spawn(self, system_id: str, job: Job) -> None:
        """Start the machine's job, in place of an earlier one."""
        self._cancel_job(system_id)
        task = asyncio.create_task(job, name=f"maas {system_id}")
        self._jobs[system_id] = task
        task.add_done_callback(_report)

    def spawn_aside(self, job: Job) -> None:
        """Start a task that no later operation cancels."""
        task = asyncio.create_task(job, name="maas power")
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        task.add_done_callback(_report)

    def watch(self, system_id: str, seconds: float, expired: Callable[[], None]) -> None:
        """Call `expired` after `seconds`, unless watched again or unwatched before."""
        self.unwatch(system_id)

        def expire() -> None:
            self._watches.pop(system_id, None)
            self._cancel_job(system_id)
            expired()

        self._watches[system_id] = asyncio.get_running_loop().call_later(seconds, expire)

    def watching(self, system_id: str) -> bool:
        return system_id in self._watches

    def unwatch(self, system_id: str) -> None:
        handle = self._watches.pop(system_id, None)
        if handle is not None:
            handle.cancel()

    def stop(self, system_id: str) -> None:
        """End the machine's job and its watch."""
        self.unwatch(system_id)
        self._cancel_job(system_id)

    async def settle(self) -> None:
        """Wait until every task that runs now, and those that they start, are done (for tests)."""
        while running := self._running():
            await asyncio.gather(*running, return_exceptions=True)

    async def close(self) -> None:
        """Cancel everything and wait for it to end."""
        for system_id in tuple(self._watches):
            self.unwatch(system_id)
        running = self._running()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _running(self) -> list[asyncio.Task[None]]:
        return [task for task in (*self._jobs.values(), *self._aside) if not task.done()]

    def _cancel_job(self, system_id: str) -> None:
        task = self._jobs.pop(system_id, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s ended with an error", task.get_name(), exc_info=error)
