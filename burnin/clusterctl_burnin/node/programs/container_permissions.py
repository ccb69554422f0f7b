"""Runs on a node, as the built-in probe `container-permissions`: who may use Docker, GPUs and adapters.

Standard library only, Python 3.9. It reads modes and groups of Docker's sockets and data, of device files, the
daemon's arguments and settings, and the settings of NVIDIA's container toolkit. It opens no device.
"""

from __future__ import annotations

import grp
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any, Optional

DEVICES = ("dev/nvidia[0-9]*", "dev/nvidiactl", "dev/nvidia-uvm", "dev/infiniband/*")
SOCKETS = ("run/docker.sock",)
DAEMON = "etc/docker/daemon.json"
TOOLKIT = "etc/nvidia-container-runtime/config.toml"
DATA = "/var/lib/docker"
ACL = "system.posix_acl_access"


def described(path: Path, root: Path) -> dict[str, Any]:
    """Return the path with mode, group and whether an access list (acl(5)) grants more."""
    found = path.stat()
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    try:
        listed = ACL in os.listxattr(path)
    except OSError:
        listed = False
    mode = stat.S_IMODE(found.st_mode)
    return {"path": f"/{path.relative_to(root)}", "mode": mode, "group": group, "acl": listed}


def text(path: Path) -> Optional[str]:
    """Return what the file holds; None where there is none."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def settings(root: Path) -> dict[str, Any]:
    """Return the settings of Docker's daemon; empty where it has none, or none that can be read."""
    try:
        found = json.loads(text(root / DAEMON) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def arguments(root: Path) -> Optional[list[str]]:
    """Return the arguments of the daemon that runs; None where none does."""
    for entry in (root / "proc").glob("[0-9]*"):
        if (text(entry / "comm") or "").strip() == "dockerd":
            return (text(entry / "cmdline") or "").split("\0")[1:]
    return None


def hosts(words: list[str]) -> list[str]:
    """Return the addresses that the daemon listens on by its arguments: `-H ADDRESS`, `--host=ADDRESS`."""
    found = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-H", "--host")]
    found += [word[2:].lstrip("=") for word in words if word.startswith("-H") and word != "-H"]
    return found + [word.partition("=")[2] for word in words if word.startswith("--host=")]


def docker(root: Path) -> Optional[dict[str, Any]]:
    """Return what protects the daemon; None where none runs."""
    words, written = arguments(root), settings(root)
    if words is None:
        return None
    listed = written.get("hosts")
    named = hosts(words) + [str(one) for one in (listed if isinstance(listed, list) else [])]
    flags = [word for word in words if word in ("--tlsverify", "--tlsverify=true")]
    data = root / str(written.get("data-root") or DATA).lstrip("/")
    return {
        "sockets": [described(root / one, root) for one in SOCKETS if (root / one).exists()],
        "tcp": [one for one in named if one.startswith("tcp:")],
        "tls_verify": bool(flags) or written.get("tlsverify") is True,
        "data": described(data, root) if data.is_dir() else None,
    }


def main(root: Path = Path("/")) -> int:
    """Print `{"docker", "toolkit", "devices"}`; `docker` null where no daemon runs, `toolkit` its file or null."""
    paths = [path for pattern in DEVICES for path in sorted(root.glob(pattern)) if not path.is_dir()]
    devices = [described(path, root) for path in paths]
    json.dump({"docker": docker(root), "toolkit": text(root / TOOLKIT), "devices": devices}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
