"""Who holds a claim: a process, told apart from a later one with its number and from one of another machine."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

HOSTS_OWN = "pid:[4026531836]"
"""The machine's first pid namespace (PROC_PID_INIT_INO in the kernel): what runs in it ends with the machine's boot."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process.

    started  when it started, in clock ticks since boot (proc(5), stat field 22): with `pid` and `boot` it is unique
    boot     the kernel's boot id and the pid namespace, in which `pid` means this process and no other
    machine  the machine's id (machine-id(5)), where the process would not outlive a reboot; empty in a container
    """

    host: str
    pid: int
    started: str
    boot: str = ""
    machine: str = ""

    @classmethod
    def this(cls) -> Owner:
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _started(pid) or "", _boot(), _machine())

    @property
    def dead(self) -> bool:
        """True only where it is certain: a process of this very boot that is gone, or one from before the reboot."""
        here = Owner.this()
        if self.boot and self.boot == here.boot:
            return _started(self.pid) != self.started
        return bool(self.machine) and (self.host, self.machine) == (here.host, here.machine)


def _started(pid: int) -> str | None:
    """None where there is no such process, or only what is left of it until its parent asks for its exit status."""
    state, *fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split() or ("",)
    return fields[18] if fields and state not in ("Z", "X") else None


def _boot() -> str:
    boot_id = _text("/proc/sys/kernel/random/boot_id")
    namespace = _namespace()
    return f"{boot_id} {namespace}" if boot_id and namespace else ""


def _machine() -> str:
    return _text("/etc/machine-id") if _namespace() == HOSTS_OWN else ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _text(path: str) -> str:
    """A small file of the system; empty where it is not there."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
