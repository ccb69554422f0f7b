"""OpenSM on the lab's first spine switch, as on a switch with an embedded subnet manager."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.fabric.process import preload, spawn, stop, tool

_UP = b"SUBNET UP"
_UP_SECONDS = 20
_CONFIGURATION = """\
force_link_speed 0
force_link_speed_ext 0
force_link_width 0
"""
"""Leave the speeds and widths that the ports allow as they are: a slow adapter stays slow."""


class SubnetManager:
    """One resident OpenSM: it sweeps every 10 s, and immediately when a switch reports a changed port."""

    def __init__(self, folder: Path, socket: str) -> None:
        self._folder = folder
        self._socket = socket
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, node: str) -> None:
        """Run OpenSM at ibsim's `node`; return when it reports that the subnet is up."""
        env = {
            "LD_PRELOAD": preload(),
            "IBSIM_SOCKNAME": self._socket,
            "SIM_HOST": node,
            "OSM_TMP_DIR": str(self._folder),
            "OSM_CACHE_DIR": str(self._folder),
        }
        (self._folder / "opensm.conf").write_text(_CONFIGURATION, encoding="utf-8")
        argv = (tool("opensm"), "-F", "opensm.conf", "-R", "ftree", "-s", "10", "-f", "stdout")
        self._process = await spawn(argv, cwd=self._folder, env=env)
        up = asyncio.Event()
        self._drain = asyncio.create_task(self._follow(self._process, up), name="opensm log")
        waiting = asyncio.create_task(up.wait(), name="subnet up")
        await asyncio.wait({waiting, self._drain}, timeout=_UP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not up.is_set():
            await self.close()
            raise EnvironmentBrokenError(
                "the subnet does not come up", where=str(self._folder / "opensm.log"), remedy="read OpenSM's log"
            )

    async def close(self) -> None:
        if self._process is not None:
            await stop(self._process)
            fake_sysfs = self._folder / f"sys-{self._process.pid}"
            await asyncio.to_thread(shutil.rmtree, fake_sysfs, ignore_errors=True)
        if self._drain is not None:
            await self._drain

    async def _follow(self, process: asyncio.subprocess.Process, up: asyncio.Event) -> None:
        """Write what OpenSM prints into its log, until it ends."""
        if process.stdout is None:
            return
        with (self._folder / "opensm.log").open("wb") as log:
            async for line in process.stdout:
                log.write(line)
                log.flush()
                if _UP in line:
                    up.set()
