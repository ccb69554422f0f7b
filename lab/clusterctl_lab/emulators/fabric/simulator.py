"""ibsim, driven through its console."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.fabric import port_states
from clusterctl_lab.emulators.fabric.process import spawn, stop, tool
from clusterctl_lab.emulators.fabric.topology import SWITCH_PORTS, Adapter, Cable, End, Switch

_FDR, _EDR, _HDR = 1, 2, 4  # LinkSpeedExtEnabled, InfiniBand Architecture 1.3 volume 1, PortInfo
_QUANTUM_2 = 0xD2F2
_CONNECTX_7 = 0x1021


def net_file(switches: Iterable[Switch], adapters: Iterable[Adapter]) -> str:
    """A net file for ibsim, in the format of ibnetdiscover's output."""
    return "\n".join((*_switches(switches), *_adapters(adapters)))


def _switches(switches: Iterable[Switch]) -> Iterator[str]:
    for switch in switches:
        yield from _head(_QUANTUM_2, switch.guid, _FDR | _EDR | _HDR)
        yield f"switchguid=0x{switch.guid}({switch.guid})"
        yield f'Switch\t{SWITCH_PORTS} "S-{switch.guid}"\t\t# "{switch.description}" enhanced port 0 lid 0 lmc 0'
        yield ""


def _adapters(adapters: Iterable[Adapter]) -> Iterator[str]:
    for adapter in adapters:
        yield from _head(_CONNECTX_7, adapter.guid, _speeds(adapter.gbps))
        yield f"caguid=0x{adapter.guid}"
        yield f'Ca\t1 "H-{adapter.guid}"\t\t# "{adapter.description}"'
        yield ""


def _head(device: int, guid: str, speeds: int) -> tuple[str, ...]:
    return "vendid=0x2c9", f"devid=0x{device:x}", f"sysimgguid=0x{guid}", f"extspeed={speeds}"


def _speeds(gbps: int) -> int:
    """The speeds that an adapter of this rate (4 lanes) allows; nothing below 100 Gb/s can be shown."""
    if gbps >= 400:
        return _FDR | _EDR | _HDR
    return _FDR | _EDR if gbps >= 200 else _FDR


_ANSWER_SECONDS = 20
_COMMANDS = 1000
"""Commands of one file."""
_COMPLAINT = re.compile(r"^(?:sim> )*(# .*|command '.*)$", re.MULTILINE)


class Simulator:
    """One ibsim process. `socket` names its abstract sockets: two labs with two names do not meet."""

    def __init__(self, folder: Path, socket: str) -> None:
        self._folder = folder
        self._socket = socket
        self._process: asyncio.subprocess.Process | None = None
        self._batches = 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, switches: Iterable[Switch], adapters: Iterable[Adapter]) -> None:
        """Load the devices, nothing plugged in; returns when the console answers."""
        switches, adapters = tuple(switches), tuple(adapters)
        (self._folder / "net").write_text(net_file(switches, adapters), encoding="utf-8")
        nodes = len(switches) + len(adapters)
        ports = len(switches) * (SWITCH_PORTS + 1) + 2 * len(adapters)
        argv = (tool("ibsim"), "-s", "-N", f"{nodes + 1}", "-S", f"{len(switches) + 1}", "-P", f"{ports + 1}", "net")
        self._process = await spawn(argv, cwd=self._folder, env={"IBSIM_SOCKNAME": self._socket})
        await self._run([])

    async def plug(self, pull: Iterable[Cable], plug: Iterable[Cable]) -> None:
        """Pull and plug cables in one step; return when it is done."""
        commands = [f'Unlink "{near.node}"[{near.port}]' for near, _ in sorted(pull)]
        commands += [f'Link "{near.node}"[{near.port}] "{far.node}"[{far.port}]' for near, far in sorted(plug)]
        if commands:
            complaints = _COMPLAINT.findall(await self._run(commands))
            if complaints:
                raise _broken("; ".join(complaints[:3]))

    async def set_counters(self, commands: list[str]) -> None:
        """Set port counters by `PerformanceSet` commands."""
        for start in range(0, len(commands), _COMMANDS):
            complaints = _COMPLAINT.findall(await self._run(commands[start : start + _COMMANDS]))
            if complaints:
                raise _broken("; ".join(complaints[:3]))

    async def port_states(self) -> Mapping[End, str]:
        """The physical state of each port, as `LinkUp`."""
        states = port_states.parse_dump(await self._run(["Dump"]))
        if not states:
            raise _broken("its dump names no port")
        return states

    async def close(self) -> None:
        if self._process is not None:
            await stop(self._process)

    async def _run(self, commands: list[str]) -> str:
        """Run a file of commands in ibsim; return its output up to the comment at its end."""
        if self._process is None or self._process.stdin is None:
            raise _broken("it is not running")
        self._batches += 1
        done = f"#batch-{self._batches}-done"
        (self._folder / "commands").write_text("\n".join([*commands, done, ""]), encoding="utf-8")
        self._process.stdin.write(b"!commands\n")
        try:
            await self._process.stdin.drain()
            return await asyncio.wait_for(self._until(done), _ANSWER_SECONDS)
        except (TimeoutError, ConnectionError) as error:
            raise _broken("its console does not answer") from error

    async def _until(self, mark: str) -> str:
        """What ibsim prints before `mark`."""
        if self._process is None or self._process.stdout is None:
            raise _broken("it is not running")
        message = b""
        while mark.encode() not in message:
            chunk = await self._process.stdout.read(65536)
            if not chunk:
                raise _broken(f"it ended: {message[-300:].decode(errors='replace')}")
            message += chunk
        return message.decode(errors="replace").split(mark, 1)[0]


def _broken(what: str) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(what, where="ibsim", remedy="take the lab down and up again")
