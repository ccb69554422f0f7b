"""One running host: its processes from the launcher to systemd, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import io
import os
import signal
import tarfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.hosts import wiring
from clusterctl_lab.hosts.cgroups import LAUNCHERS, MOUNTS
from clusterctl_lab.hosts.command import PATH, Ran, environment, run
from clusterctl_lab.hosts.mounts import HostPaths, base_table, inner_table
from clusterctl_lab.hosts.quota import legacy_mount
from clusterctl_lab.image_contents import DEVICE_TEMPLATE
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine

SCRIPTS = Path(str(files("clusterctl_lab.hosts")))
Skeleton = Mapping[str, tuple[bytes, int]]
"""Absolute path → content and mode."""


class ExitReason(enum.Enum):
    """Why a host stopped although its power is on."""

    REBOOT = "reboot"
    POWEROFF = "poweroff"
    CRASH = "crash"


WITHOUT = ",".join(
    f"-{capability}"
    for capability in (
        *("sys_time", "wake_alarm", "sys_module", "mknod", "sys_rawio", "syslog", "block_suspend"),
        *("audit_control", "audit_read", "mac_admin", "mac_override", "bpf", "perfmon"),
    )
)
"""What would reach the machine: its clock, modules, devices, kernel log, audit. In setpriv's form.

CAP_SYS_BOOT stays: in a PID namespace reboot(2) ends that namespace only, and distinguishes a reboot from a power-off.
"""

CONFINED = ("setpriv", "--inh-caps", "-all", "--bounding-set", WITHOUT)
"""nsenter brings the machine's rights along; a command inside a host may do no more than the host's own root."""

_REASONS = {-signal.SIGHUP: ExitReason.REBOOT, -signal.SIGINT: ExitReason.POWEROFF}
"""How reboot(2) in a PID namespace ends its init: pid_namespaces(7)."""


@dataclass(frozen=True, slots=True)
class RunningHost:
    """`process` is the launcher, which lives as long as the host's init; `pid` is init's, seen from the machine."""

    machine: Machine
    process: asyncio.subprocess.Process
    pid: int

    async def ended(self) -> ExitReason:
        """Wait for its end."""
        return _REASONS.get(await self.process.wait(), ExitReason.CRASH)


def prepare(paths: HostPaths, machine: Machine, layout: Layout, skeleton: Skeleton) -> None:
    """Render what the launcher reads, into a fresh run folder."""
    for folder in (paths.root, paths.run / "sysctl/work", paths.dmi):
        folder.mkdir(mode=0o755, parents=True)
    boot_id = paths.sysctl_upper / "kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text(f"{uuid.uuid4()}\n")
    for name, value in _dmi(machine).items():
        (paths.dmi / name).write_text(f"{value}\n")
    (paths.run / "switch.batch").write_text(wiring.host_in_switch(machine, layout))
    (paths.run / "host.batch").write_text(wiring.host(machine, layout))
    (paths.run / "base.fstab").write_text(base_table(paths))
    cpu = legacy_mount(MOUNTS.read_text())
    (paths.run / "inner.fstab").write_text(inner_table(paths, Path.exists, cpu))
    paths.skeleton.write_bytes(archive(skeleton))


async def launch(lab: str, paths: HostPaths, machine: Machine, cgroup: Path, switch_netns: str) -> RunningHost:
    """Returns when init runs; raises `EdgeError` with the console's last lines when it does not."""
    launchers = cgroup.with_name(LAUNCHERS)
    template = paths.lowers[-1] / DEVICE_TEMPLATE
    with (paths.run / "console.log").open("wb") as console:
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "sh", str(SCRIPTS / "enter.sh")),
            *(str(paths.run), str(cgroup), str(launchers), switch_netns, str(SCRIPTS), str(template), WITHOUT),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=console,
            env=environment(lab),
            start_new_session=True,
        )
    try:
        word, _, pid = (await process.stdout.readline() if process.stdout else b"").partition(b" ")
    except BaseException:  # cancelled: launcher, its helpers and init are still one process group
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if word != b"running":
        await process.wait()
        raise EdgeError(
            f"does not boot: {_tail(paths.run / 'console.log')}",
            where=machine.name,
            remedy="Read the lab's log, then run `clusterctl lab down` and `clusterctl lab up`.",
        )
    return RunningHost(machine, process, int(pid))


async def inside(
    lab: str, host: RunningHost, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 120.0
) -> Ran:
    """Run `argv` as root inside the host, past its network and outside its cgroup: even while it is frozen."""
    enter = ("nsenter", f"--target={host.pid}", "--all", "env", "-i", f"PATH={PATH}", *CONFINED, *argv)
    return await run(lab, enter, stdin=stdin, timeout_s=timeout_s)


def archive(skeleton: Skeleton) -> bytes:
    """The files as a tar, all of root; unpacked inside the host, so that its links cannot lead out of it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (content, mode) in skeleton.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size, member.mode, member.mtime = len(content), mode, int(time.time())
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _dmi(machine: Machine) -> dict[str, str]:
    """Return the content of /sys/class/dmi/id for the machine; mounted where a real machine has that folder."""
    return {
        "sys_vendor": machine.manufacturer,
        "product_name": machine.model,
        "product_serial": machine.serial,
        "product_uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, machine.serial)),
        "chassis_vendor": machine.manufacturer,
        "chassis_serial": machine.serial,
        "board_vendor": machine.manufacturer,
        "board_serial": machine.serial,
        "bios_vendor": machine.manufacturer,
        "bios_version": machine.bios_version,
    }


def _tail(console: Path) -> str:
    lines = console.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "it printed nothing"
