"""What a job's manifest records of the controller's surroundings: the commit of its code, files, outside services."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.ports import Deadline

GIT_S = 20.0
CONNECT_S = 5.0
_PORTS = {"http": 80, "https": 443, "s3": 443, "ssh": 22}


def code_of(folder: Path, deadline: Deadline) -> Mapping[str, str]:
    """Return the commit of a folder and whether files differ from it; why not, where it is no checkout."""
    git = ("git", "-C", str(folder))
    surroundings = Surroundings(missing="apt-get install git")
    try:
        head = run((*git, "rev-parse", "HEAD"), deadline.within(GIT_S), surroundings)
        if head.exit_status != 0:
            return {"folder": str(folder), "unknown": "it is no checkout of git"}
        changed = run((*git, "status", "--porcelain"), deadline.within(GIT_S), surroundings)
        digest = hashlib.sha256(changed.stdout.encode()).hexdigest()[:12] if changed.stdout.strip() else ""
        return {"folder": str(folder), "commit": head.stdout.strip()[:64], "changed": digest}
    except ClusterctlError as error:
        return {"folder": str(folder), "unknown": error.message}


def digest_of(file: Path) -> str:
    """Return SHA-256 of a file. Raises `UsageError` where it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file), remedy="name a file") from None


def reachable(service: str) -> str:
    """Return `reachable` where a service (`https://hub:443`, `ntp1:123`) takes TCP connections, else why not."""
    parts = urlsplit(service if "://" in service else f"tcp://{service}")
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    if not parts.hostname or not port:
        raise UsageError(f"{service!r} has no host and port", where="--service", remedy="give HOST:PORT or a URL")
    try:
        with socket.create_connection((parts.hostname, port), timeout=CONNECT_S):
            return "reachable"
    except OSError as error:
        return f"not reachable: {error.strerror or error}"
