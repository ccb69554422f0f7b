"""The changes of the fleet as server-sent events: read and rendered once for all open pages."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from clusterctl.fleet.peer_text import visible
from clusterctl_web.live_fleet import POLL_S, LiveFleet
from clusterctl_web.rendering import tile_html


@dataclass
class ChangeFeed:
    """One reader asks the journal, the others get what it has found. For one event loop."""

    live: LiveFleet
    _last: int = 0
    _asked: float = float("-inf")
    _found: dict[int, tuple[int, str]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def after(self, since: int) -> tuple[int, str]:
        """Return the number of the last event, and the event for a page that knows those up to `since`: empty where
        no tile has changed.
        """
        async with self._lock:
            if time.monotonic() - self._asked >= POLL_S:
                last = await run_in_threadpool(self.live.refresh)
                if last != self._last:
                    self._found.clear()
                self._last, self._asked = last, time.monotonic()
            if since >= self._last:
                return self._last, ""
            if since not in self._found:
                self._found[since] = await run_in_threadpool(self._event, since)
            return self._found[since]

    def _event(self, since: int) -> tuple[int, str]:
        last, tiles = self.live.changed(since)
        data = {visible(name): tile_html(tile) for name, tile in tiles.items()}
        return last, f"id: {last}\ndata: {json.dumps(data)}\n\n" if data else ""
