"""The machine's kernel settings: a copy for the hosts to write to, and the few that many hosts need raised."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROC_SYS = Path("/proc/sys")

NEEDED = {
    # 250 hosts: an ARP entry per pair that talks, a dozen inotify instances per systemd.
    "net/ipv4/neigh/default/gc_thresh1": 16384,
    "net/ipv4/neigh/default/gc_thresh2": 65536,
    "net/ipv4/neigh/default/gc_thresh3": 131072,
    "fs/inotify/max_user_instances": 8192,
    "fs/inotify/max_user_watches": 524288,
}
"""Below /proc/sys: raised where lower while a lab runs."""


def to_raise() -> dict[str, tuple[int, int]]:
    """What `raise_limits` would change, as name → (now, then)."""
    return {
        name: (now, needed)
        for name, needed in NEEDED.items()
        if (PROC_SYS / name).exists() and (now := int((PROC_SYS / name).read_text())) < needed
    }


def raise_limits(record: Path) -> None:
    """Raise what is too low and write its former values to `record`; values that another lab wrote there stay."""
    record.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with _exclusive(record.parent):
        changes = to_raise()
        before = _read(record)
        record.write_text(json.dumps({name: now for name, (now, _) in changes.items()} | before))
        # gc_thresh3 first: the kernel keeps no order, but readers expect one
        for name in sorted(changes, reverse=True):
            (PROC_SYS / name).write_text(str(changes[name][1]))


def restore_limits(record: Path, needed: Callable[[], bool]) -> bool:
    """Restore the values of `record` unless `needed`, which is true while a lab runs; return whether it was done."""
    if not record.exists():
        return False
    with _exclusive(record.parent):
        if needed() or not record.exists():
            return False
        for name, value in sorted(_read(record).items()):
            (PROC_SYS / name).write_text(str(value))
        record.unlink()
    return True


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Exclude other labs: one that starts must not lose the limits that the last one restores."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def copy_settings(target: Path, leave_out: Iterable[str]) -> None:
    """Copy /proc/sys into `target` as plain files; `leave_out` are there to bind the real ones on."""
    left_out = set(leave_out)
    for folder, folders, files in os.walk(PROC_SYS):
        inside = Path(folder).relative_to(PROC_SYS)
        (target / inside).mkdir(mode=0o755, parents=True, exist_ok=True)
        folders[:] = [name for name in folders if str(inside / name) not in left_out]
        for name in files:
            (target / inside / name).write_bytes(_value(PROC_SYS / inside / name))
    for name in left_out:
        if (PROC_SYS / name).is_dir():
            (target / name).mkdir(mode=0o755, parents=True, exist_ok=True)


def _value(path: Path) -> bytes:
    """Write-only settings, and those of absent hardware, read as empty."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _read(record: Path) -> dict[str, int]:
    try:
        values = json.loads(record.read_text())
    except FileNotFoundError:
        return {}
    return {str(name): int(value) for name, value in values.items()}
