"""A file system without a byte left: logs, packages and sockets can no longer be written."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine

PATHS = ("/tmp", "/var")  # noqa: S108 — file systems of the lab's hosts, to be filled


def _apply(machine: Machine, part: str) -> Machine:
    path = part or PATHS[0]
    if path not in PATHS:
        raise no_such_part(machine, f"file system {path}", PATHS)
    return replace(machine, system=replace(machine.system, disk_full=path)).with_fault(f"full-disk:{path}")


FAULT = Fault(
    name="full-disk",
    does="fills a file system of the host to its last byte (/tmp where none is named); it is a small one of its own",
    shows="df: 0 bytes free; each write to it fails with ENOSPC",
    target="NODE or NODE:/var",
    apply=_apply,
)
