"""A child that dies with the lab, whatever kills the lab."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError

PACKAGES = "ibsim-utils opensm infiniband-diags"


def tool(name: str) -> str:
    """Where the tool is. Raises EnvironmentBrokenError with the packages to install."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise EnvironmentBrokenError(f"{name} is missing", where="lab fabric", remedy=f"apt-get install {PACKAGES}")
    return found


def preload() -> str:
    """The library that leads the InfiniBand tools to ibsim instead of /dev/infiniband."""
    found = sorted(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
    if not found:
        raise EnvironmentBrokenError(
            "libumad2sim.so is missing", where="lab fabric", remedy=f"apt-get install {PACKAGES}"
        )
    return str(found[0])


async def spawn(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start it with pipes for stdin and stdout (stderr with it); SIGKILL reaches it when the lab's process dies."""
    return await asyncio.create_subprocess_exec(
        tool("setpriv"),
        "--pdeathsig",
        "KILL",
        "--",
        *argv,
        cwd=cwd,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", **env},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def stop(process: asyncio.subprocess.Process) -> None:
    """Kill it, unless it is gone already, and wait for it."""
    if process.returncode is None:
        process.kill()
    await process.wait()
