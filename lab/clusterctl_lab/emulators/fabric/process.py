"""A child process that ends with the lab, even when the lab is killed."""

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
    """Return the library that redirects the InfiniBand tools to ibsim instead of /dev/infiniband."""
    found = sorted(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
    if not found:
        raise EnvironmentBrokenError(
            "libumad2sim.so is missing", where="lab fabric", remedy=f"apt-get install {PACKAGES}"
        )
    return str(found[0])


async def spawn(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start it with pipes for stdin and stdout (stderr joins stdout); it receives SIGKILL when the lab ends."""
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
    """Kill the process unless it has ended, and wait for it."""
    if process.returncode is None:
        process.kill()
    await process.wait()
