"""Port states that tools have set: read from ibsim, and set again where plugging a cable has reset them.

ibsim keeps a port's physical state and passes no traffic through a port that is not up, but it leaves the link at both
ends `Active` and reports no change. So the lab pulls the cable of a disabled port while it is disabled: both ends read
`Down`, the far one `Polling`, and the subnet manager is notified, as from a real switch. In ibsim a pulled cable resets
both ports, so the disabled port has to be disabled again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError
from clusterctl_lab.emulators.fabric.announce import FOLLOWED
from clusterctl_lab.emulators.fabric.process import preload, spawn, stop, tool
from clusterctl_lab.emulators.fabric.topology import Cable, End

LINK_UP = "LinkUp"
_DISABLED = "Disabled"
_SET_SECONDS = 20
_NODE = re.compile(r'^(?:Switch|Ca) \d+ "([^"]+)"')
_PORT = re.compile(r"^[0-9a-f]+\t\[(\d+)\]\t.* \S+/(\w+)(?:\t#.*)?$")


def parse_dump(text: str) -> Mapping[End, str]:
    """Parse ibsim's `Dump` into the physical state of each port that a cable can reach."""
    states: dict[End, str] = {}
    node = ""
    for line in text.splitlines():
        if match := _NODE.match(line):
            node = match[1]
        elif (match := _PORT.match(line)) and int(match[1]):
            states[End(node, int(match[1]))] = match[2]
    return states


def disabled_among(states: Mapping[End, str]) -> frozenset[End]:
    return frozenset(end for end, state in states.items() if state == _DISABLED)


def asleep_among(states: Mapping[End, str], cables: Iterable[Cable]) -> frozenset[Cable]:
    """Return the plugged cables with a port that is not up, as after a reset."""
    return frozenset(cable for cable in cables if any(states.get(end, LINK_UP) != LINK_UP for end in cable))


async def disable(ends: Iterable[End], scratch: Path, socket: str) -> None:
    """Disable ports, each at its own device, which needs no path through the fabric."""
    for end in sorted(ends):
        env = {"LD_PRELOAD": preload(), "IBSIM_SOCKNAME": socket, "SIM_HOST": end.node}
        argv = (tool("ibportstate"), "-D", "0", f"{end.port}", "disable")
        with TemporaryDirectory(dir=scratch) as folder:  # the preloaded library writes where it runs
            process = await spawn(argv, cwd=Path(folder), env=env)
            try:
                text, _ = await asyncio.wait_for(process.communicate(), _SET_SECONDS)
            except TimeoutError:
                await stop(process)
                text = b"it does not answer"
        if process.returncode != 0:
            message = f"port {end.port} of {end.node} cannot be disabled: {text[-200:].decode(errors='replace')}"
            raise EnvironmentBrokenError(message, where="ibsim", remedy="take the lab down and up again")


async def serve_announcements(name: str, follow: Callable[[], Awaitable[None]]) -> asyncio.Server:
    """Answer `announce.py` on the abstract socket `name` after `follow` has returned, or with its error."""

    async def announced(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        try:
            await follow()
            writer.write(FOLLOWED.encode())
        except ClusterctlError as error:
            writer.write(str(error).encode())
        finally:
            writer.close()

    return await asyncio.start_unix_server(announced, f"\0{name}")
