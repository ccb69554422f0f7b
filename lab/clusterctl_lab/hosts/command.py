"""Runs commands on the machine, marked with the lab's name and bounded in time."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EnvironmentBrokenError, UnreachableError
from clusterctl_lab.hosts.names import MARKER

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to: exit status (negative: killed by that signal) and its output."""

    rc: int
    stdout: bytes
    stderr: bytes


def environment(lab: str) -> dict[str, str]:
    """The whole environment of a helper process."""
    return {"PATH": PATH, "LC_ALL": "C.UTF-8", MARKER: lab}


async def run(lab: str, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 120.0) -> Ran:
    """Run `argv` to its end; past `timeout_s` it is killed and `UnreachableError` raised."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(lab),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await process.communicate(stdin)
    except TimeoutError as error:
        raise UnreachableError(f"`{shlex.join(argv)}` did not end within {timeout_s:.0f} s", where=lab) from error
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
            await process.wait()
    return Ran(process.returncode or 0, stdout, stderr)


async def check(lab: str, argv: Sequence[str], *, stdin: str = "", remedy: str = "") -> str:
    """Standard output of a command that must succeed; else `EnvironmentBrokenError` with its own words."""
    ran = await run(lab, argv, stdin=stdin.encode())
    if ran.rc != 0:
        words = ran.stderr.decode(errors="replace").strip()[-400:]
        raise EnvironmentBrokenError(f"`{shlex.join(argv)}` failed: {words}", where=f"lab {lab}", remedy=remedy)
    return ran.stdout.decode(errors="replace")
