"""What is left on a node after a job: processes, shared memory and temporary files of its user, memory of GPUs.

What belongs to another job of the user is left alone: where Slurm does not report the jobs of the node, nothing is
removed. Logs are copied before their files are removed. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIN_UID = 1000
"""Accounts below are the system's: login.defs(5), UID_MIN."""
TERM_S, KILL_S = 3.0, 5.0
POLL_S = 0.1
KEPT_SUFFIXES = (".log", ".err", ".out")
KEPT_PREFIXES = ("nccl_trace", "nccl.", "core.log")
MAX_LOG_BYTES = 16 << 20
MAX_JOB_BYTES = 64 << 20
MAX_ENTRIES = 20_000
KEEP_S = 14 * 86400.0
GPU_MIB = 1024
"""Memory of an idle GPU with MIG, persistence and DCGM is below; a job's is far above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpilogJob:
    """A job that ended. `others`: the jobs that Slurm still has on this node, with their users; None where unknown."""

    number: str
    user: int
    others: Mapping[str, int] | None

    @property
    def owns_user(self) -> bool:
        """Return whether what the user has on this node is this job's alone."""
        return self.user >= MIN_UID and self.others is not None and self.user not in self.others.values()


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where is looked. `temporary`: folders whose entries are removed; `kept`: where logs are copied to."""

    temporary: tuple[Path, ...] = (Path("/dev/shm"), Path("/tmp"), Path("/var/tmp"))  # noqa: S108 — jobs write there
    processes: Path = Path("/proc")
    kept: Path = Path("/var/log/clusterctl/jobs")


@dataclass(slots=True, kw_only=True)
class Cleaned:
    """What was found and done. `left`: processes that did not end; `failed`: check → what failed."""

    killed: int = 0
    left: list[str] = field(default_factory=list)
    removed: int = 0
    kept: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def clean(job: EpilogJob, places: Places, gpu_memory: Callable[[], Mapping[int, int] | None]) -> Cleaned:
    """End processes, keep logs, remove files and look at the GPUs. Raises nothing for what it cannot remove.

    gpu_memory  returns the MiB in use by GPU; None where that was not measured
    """
    done = Cleaned()
    if job.owns_user:
        done.killed, done.left = end_processes(job.user, places.processes)
        if done.left:
            done.failed["epilog_processes"] = f"processes that do not end: {', '.join(done.left[:5])}"
        done.kept = list(keep_logs(job, places))
        done.removed, done.errors = remove_files(job.user, places.temporary)
    if job.others is not None and not job.others and (used := _held_memory(gpu_memory)):
        text = ", ".join(f"GPU {gpu}: {mib} MiB" for gpu, mib in used.items())
        done.failed["epilog_gpu_memory"] = f"memory in use without a job: {text}"
    _forget(places.kept, time.time() - KEEP_S)
    return done


def end_processes(user: int, processes: Path) -> tuple[int, list[str]]:
    """End all processes of a user; return how many there were, and those that did not end."""
    first = set(_of_user(user, processes))
    for number, seconds in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, KILL_S)):
        until = time.monotonic() + seconds
        while running := list(_of_user(user, processes)):
            for pid in running:
                _signal(pid, user, number, processes)
            if time.monotonic() > until:
                break
            time.sleep(POLL_S)
    return len(first), [f"{_name(pid, processes)} ({pid})" for pid in _of_user(user, processes)]


def _of_user(user: int, processes: Path) -> Iterator[int]:
    for entry in processes.iterdir():
        if entry.name.isdigit() and _owner(entry) == user:
            yield int(entry.name)


def _owner(entry: Path) -> int | None:
    """Return the real user of a process that has not ended; None for a zombie or one that is gone."""
    try:
        lines = (entry / "status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    if facts.get("State", "").strip().startswith(("Z", "X")):
        return None
    uids = facts.get("Uid", "").split()
    return int(uids[0]) if uids else None


def _signal(pid: int, user: int, number: signal.Signals, processes: Path) -> None:
    """Signal the process, looked at again through a handle that a later process of the same number never gets."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _owner(processes / str(pid)) == user:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        pass
    finally:
        os.close(handle)


def _name(pid: int, processes: Path) -> str:
    try:
        return (processes / str(pid) / "comm").read_text(errors="replace").strip()[:32]
    except OSError:
        return "?"


def keep_logs(job: EpilogJob, places: Places) -> Iterator[str]:
    """Copy the user's logs from the temporary folders; yield the paths that were copied, within the limits of size."""
    left, target = MAX_JOB_BYTES, places.kept / job.number
    for number, path in enumerate(_files_of(job.user, places.temporary)):
        if number > MAX_ENTRIES or left <= 0:
            return
        if not (path.name.endswith(KEPT_SUFFIXES) or path.name.startswith(KEPT_PREFIXES)):
            continue
        content = _content(path, job.user, min(left, MAX_LOG_BYTES))
        if content:
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy = target / f"{number:05}-{path.name[:100]}"
            copy.write_bytes(content)
            copy.chmod(0o600)
            left -= len(content)
            yield str(path)


def _content(path: Path, user: int, most: int) -> bytes:
    """Return the last bytes of a regular file of the user; a link or a pipe in its place is not followed or read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != user:
            return b""
        file.seek(max(0, facts.st_size - most))
        return file.read(most)


def _files_of(user: int, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files below the user's own entries of these folders; links are not followed."""
    for entry in _entries_of(user, folders):
        if entry.is_dir(follow_symlinks=False):
            for root, _, names in os.walk(entry.path, followlinks=False):
                yield from (Path(root, name) for name in sorted(names))
        else:
            yield Path(entry.path)


def _entries_of(user: int, folders: Iterable[Path]) -> Iterator[os.DirEntry[str]]:
    for folder in folders:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_uid == user:
                    yield entry
            except OSError:
                continue


def remove_files(user: int, folders: Iterable[Path]) -> tuple[int, list[str]]:
    """Remove the user's own entries of these folders; return how many, and what could not be removed."""
    removed, errors = 0, []
    for entry in _entries_of(user, folders):
        try:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()
        except OSError as error:
            errors.append(f"{entry.path}: {error.strerror}")
        else:
            removed += 1
    return removed, errors


def _held_memory(gpu_memory: Callable[[], Mapping[int, int] | None]) -> Mapping[int, int]:
    """Return the GPUs with memory in use, looked at for as long as a driver takes to release it."""
    until = time.monotonic() + KILL_S
    while True:
        used = gpu_memory()
        held = {gpu: mib for gpu, mib in (used or {}).items() if mib > GPU_MIB}
        if not held or time.monotonic() > until:
            return held
        time.sleep(POLL_S * 5)


def read_gpu_memory(program: str, seconds: float) -> Mapping[int, int] | None:
    """Return the MiB in use by GPU; None where the driver did not report them."""
    argv = [program, "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
        lines = done.stdout.decode(errors="replace").splitlines()
        cells = [line.split(",") for line in lines if line.strip()]
        return {int(index): int(mib) for index, mib in cells} if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None


def _forget(kept: Path, before: float) -> None:
    """Remove the logs of jobs that were kept long enough."""
    try:
        old = [entry.path for entry in os.scandir(kept) if entry.stat(follow_symlinks=False).st_mtime < before]
    except OSError:
        return
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
