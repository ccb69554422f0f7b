"""Runs on a host, sent over SSH for each run: takes the host's lock, ensures that Ansible is there, starts the play.

Runs as root, with the standard library only, in a syntax for old Pythons: a host that cannot run Ansible reports that.
stdin: this source; one line of JSON, the request; after `hello` one line with sizes, then that many bytes; then empty
lines as signs of life for `supervisor.py`. stdout: one line of JSON per event.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import select
import shutil
import stat
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, Dict  # noqa: UP035

CACHE = Path("/var/cache/clusterctl/ansible")
MEMORY = (Path("/run"), Path("/dev/shm"))  # noqa: S108 — a folder of root alone is made there
POLL_SECONDS = 0.2

Request = Dict[str, Any]  # noqa: UP006 — evaluated, also by a Python that knows no other form


class CannotError(Exception):
    """The host cannot run a play itself."""


def report(event: str, **more: object) -> None:
    os.write(1, json.dumps(dict(more, event=event)).encode() + b"\n")


def receive(size: int, silence_s: float) -> bytes:
    """Return exactly `size` bytes of stdin. Ends this process when no bytes come."""
    parts, missing = [], size
    while missing:
        part = os.read(0, min(missing, 1 << 16)) if select.select([0], [], [], silence_s)[0] else b""
        if not part:
            sys.exit(1)
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def receive_line(silence_s: float) -> Request:
    line = b""
    while not line.endswith(b"\n"):
        line += receive(1, silence_s)
    found: Request = json.loads(line)
    return found


def require_root_folder(path: Path) -> None:
    """Make the folder; an existing one must belong to root, and only root may write to it."""
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
        raise CannotError(f"{path} is not a folder that only root can write to")


def memory_folder() -> Path:
    """Return a file system in memory, for the variables of a run."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    kinds = {fields[1]: fields[2] for fields in mounts}
    for path in MEMORY:
        if kinds.get(str(path)) in ("tmpfs", "ramfs"):
            return path
    raise CannotError(f"neither {MEMORY[0]} nor {MEMORY[1]} is a file system in memory")


def lock(wait_s: float) -> None:
    """Take the host's lock: one play at a time. Wait for another run, which ends when its controller has died.

    The lock belongs to this process; the play's processes do not inherit it.
    """
    descriptor = os.open(CACHE / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    until, reported = time.monotonic() + wait_s, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not reported:
                report("waiting", pid=os.pread(descriptor, 32, 0).decode().strip())
                reported = True
            if time.monotonic() > until:
                report("busy", pid=os.pread(descriptor, 32, 0).decode().strip())
                sys.exit(1)
            if select.select([0], [], [], POLL_SECONDS)[0]:  # the caller sends nothing before our hello, so it is gone
                sys.exit(1)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return


def sweep(folder: Path, *kept: str) -> None:
    """Remove the files of other versions and of dead runs."""
    for path in list(folder.iterdir()):
        if path.name in kept:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def unpack(content: bytes, digest: str) -> None:
    """Unpack the bundle into a folder named by its digest, completely or not at all."""
    if hashlib.sha256(content).hexdigest() != digest:
        raise CannotError("the received bundle has another digest")
    part = CACHE / f"{digest}.part"
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:xz") as archive:
        archive.extractall(part)  # noqa: S202 — ours, by its digest
    os.sync()
    part.rename(CACHE / digest)


def ready(request: Request) -> Path:
    """Check and prepare all that a play needs; return the folder in memory."""
    if sys.version_info[:2] < tuple(request["oldest_python"]):
        here, needed = (".".join(map(str, version)) for version in (sys.version_info[:2], request["oldest_python"]))
        raise CannotError(f"its Python is {here}, and Ansible needs {needed}")
    require_root_folder(CACHE.parent)
    require_root_folder(CACHE)
    lock(request["wait_s"])
    sweep(CACHE, "lock", request["digest"])
    runs = memory_folder() / "clusterctl-ansible"
    require_root_folder(runs)
    sweep(runs)
    return runs


def main() -> None:
    umask, folder = os.umask(0o077), str(Path.cwd())
    os.chdir("/")
    request = receive_line(60)
    silence_s, digest = request["silence_s"], request["digest"]
    try:
        runs = ready(request)
        report("hello", has_bundle=(CACHE / digest).is_dir())
        sent = receive_line(silence_s)
        if sent["bundle"]:
            unpack(receive(sent["bundle"], silence_s), digest)
        payload = receive(sent["payload"], silence_s)
        home = CACHE / digest
        sys.path.insert(0, str(home / "lib"))
        from clusterctl.edges.ansible.host_transport.programs.payload_run import Surroundings, run  # noqa: PLC0415 — it is in the bundle that has just arrived
    except (CannotError, OSError, ImportError, tarfile.TarError) as error:
        report("declined", reason=str(error) or type(error).__name__)
        return
    run(payload, sent["job"], Surroundings(home, runs, folder, umask), silence_s)


if __name__ == "__main__":
    main()
