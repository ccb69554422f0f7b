"""Runs on a node, as the built-in probe `host-os`: which OS it is, which kernel runs, and which one the next boot has.

Standard library only, Python 3.9. os-release(5); Debian and Ubuntu keep the link `vmlinuz`, in / or in /boot, on the
kernel that was installed last (linux-update-symlinks(1)).
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from pathlib import Path

RELEASE_FILES = ("etc/os-release", "usr/lib/os-release")
LINKS = ("boot/vmlinuz", "vmlinuz")
PREFIX = "vmlinuz-"


def os_release(root: Path) -> dict[str, str] | None:
    """Return the fields of os-release; None where there is no such file."""
    for name in RELEASE_FILES:
        try:
            lines = (root / name).read_text(errors="replace").splitlines()
        except OSError:
            continue
        pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
        return {key.strip(): " ".join(shlex.split(value)) for key, _, value in pairs}
    return None


def installed(root: Path) -> list[str]:
    return sorted(path.name[len(PREFIX) :] for path in (root / "boot").glob(f"{PREFIX}*"))


def next_boot(root: Path) -> str | None:
    for link in LINKS:
        if (root / link).is_symlink():
            name = (root / link).readlink().name
            return name[len(PREFIX) :] if name.startswith(PREFIX) else None
    return None


def main(requirements: dict[str, object], root: Path = Path("/"), kernel: str = "") -> None:
    """Print `{"wanted", "os_release", "kernel", "installed", "next_boot"}`."""
    document = {
        "wanted": {name: requirements.get(name, "") for name in ("release", "kernel")},
        "os_release": os_release(root),
        "kernel": kernel or platform.release(),
        "installed": installed(root),
        "next_boot": next_boot(root),
    }
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}")))
