"""Files that only their owner may read, whatever the umask."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole


def write_once(file: Path, content: bytes) -> None:
    """Whole or not at all, mode 0600 in a folder of mode 0700, and never over what is there already."""
    with disk_explained("cannot be written", file):
        _make_private(file.parent)
        write_whole(file, content, mode=0o600, over=False)


def write_over(file: Path, content: bytes) -> None:
    """The same, in the place of what is there."""
    with disk_explained("cannot be written", file):
        _make_private(file.parent)
        write_whole(file, content, mode=0o600, over=True)


def _make_private(folder: Path) -> None:
    """The folder and all missing ones above it: `mkdir(parents=True)` would open those to others."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
