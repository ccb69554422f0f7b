"""A wiring plan as ibsim's fabric, swept once by the real OpenSM."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl_lab.emulators.fabric.process import preload

OPENSM = "/usr/sbin/opensm"
MISSING = shutil.which("ibsim") is None or not Path(OPENSM).exists()
_SECONDS = 600
"""Seconds for OpenSM on a crowded machine; 2 to 3 on a quiet one, for 512 hosts."""


@dataclass(frozen=True)
class Subnet:
    """What OpenSM logged, the fabric that ibnetdiscover then sees, and the switches' tables by dump_fts."""

    log: str
    fabric: str
    tables: str

    @property
    def is_fat_tree(self) -> bool:
        return "ftree tables configured" in self.log


def sweep(plan: WiringPlan, radix: int, folder: Path, engine: str = "ftree") -> Subnet:
    """Route the planned fabric, with minhop where the engine cannot. Leaves nothing behind."""
    environment = _environment(plan, radix, folder)

    def tool(*argv: str) -> str:
        return subprocess.run(
            argv, cwd=folder, env=environment, check=True, timeout=_SECONDS, stdout=subprocess.PIPE, text=True
        ).stdout

    with _ibsim(folder, environment):
        tool(OPENSM, "-R", engine, "-D", "0x43", "-e", "-o", "-f", "osm.log")
        return Subnet((folder / "osm.log").read_text(), tool("ibnetdiscover"), tool("dump_fts"))


@contextlib.contextmanager
def managed(plan: WiringPlan, radix: int, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """Run OpenSM over the planned fabric as a daemon; yield it, and the environment of tools that reach the fabric."""
    environment = _environment(plan, radix, folder)
    with _ibsim(folder, environment), (folder / "opensm.log").open("wb") as log:
        argv = [OPENSM, "-R", "ftree", "-s", "10", "-f", "osm.log"]
        opensm = subprocess.Popen(argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield opensm, environment
        finally:
            opensm.kill()
            opensm.wait()


def _environment(plan: WiringPlan, radix: int, folder: Path) -> dict[str, str]:
    """Write the simulator's fabric; return the environment of OpenSM and of tools at its adapter."""
    net, sm = _netfile(plan, radix)
    (folder / "net").write_text(net)
    return {
        **os.environ,
        "LD_PRELOAD": preload(),
        "SIM_HOST": sm,
        "IBSIM_SOCKNAME": f"plans-{os.getpid()}",
        "OSM_TMP_DIR": str(folder),
        "OSM_CACHE_DIR": str(folder),
    }


@contextlib.contextmanager
def _ibsim(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run within the context; its console answers on entry. It warns of each line without a LID: into a file."""
    (folder / "ready").write_text("#ready\n")
    own = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    with (folder / "warnings").open("wb") as warnings:
        process = subprocess.Popen(
            ["ibsim", "-s", "-N", "6000", "-S", "400", "-P", "40000", "net"],
            cwd=folder,
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=warnings,
            bufsize=0,
        )
    try:
        process.stdin.write(b"!ready\n")
        message = b""
        while b"#ready" not in message:
            chunk = process.stdout.read(65536)
            assert chunk, message.decode(errors="replace")
            message += chunk
        yield
    finally:
        process.kill()
        process.communicate()


def _netfile(plan: WiringPlan, radix: int) -> tuple[str, str]:
    """In ibnetdiscover's words, and the adapter at which OpenSM runs. Each adapter is a device of one port."""
    ports: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    for cable in plan.cables:
        near, far = _unit(plan, cable.source), _unit(plan, cable.destination)
        ports[near[0]][near[1]], ports[far[0]][far[1]] = far, near
    ids = {name: f"{'H' if ' ' in name else 'S'}-{0x1000 + 16 * number:016x}" for number, name in enumerate(ports)}
    lines = []
    for name, links in ports.items():
        kind = "Ca\t1" if " " in name else f"Switch\t{radix}"
        lines.append(f'{kind} "{ids[name]}"\t\t# "{name}"')
        lines += [f'[{port}]\t"{ids[far]}"[{other}]\t\t# "{far}" 4xHDR' for port, (far, other) in sorted(links.items())]
        lines.append("")
    return "\n".join(lines), next(node for node in ids.values() if node.startswith("H"))


def _unit(plan: WiringPlan, port: PortName) -> tuple[str, int]:
    if port.device in plan.hosts:
        return f"{port.device} {port.port}", 1
    return port.device, int(port.port)
