"""Old images and deployers, which no name stands for any more."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.disk import disk_explained
from clusterctl.edges.os_images.store import CURRENT, BootFolder


@dataclass(frozen=True, slots=True)
class Outdated:
    """A folder with a digest, and the bytes that it holds."""

    path: Path
    size: int


def outdated(store: BootFolder) -> tuple[Outdated, ...]:
    """What `current` does not point to, where it points to something that is there."""
    shelves = [store.path / "deployer", *sorted((store.path / "images").glob("*"))]
    return tuple(old for shelf in shelves if (shelf / CURRENT).is_dir() for old in _old(shelf))


def remove(store: BootFolder, old: Sequence[Outdated]) -> None:
    """Delete them. One that has become current since is left alone."""
    with store.writing(), disk_explained("an old image cannot be removed", store.path):
        still = {each.path for each in outdated(store)}
        for each in old:
            if each.path in still:
                shutil.rmtree(each.path)


def _old(shelf: Path) -> list[Outdated]:
    current = (shelf / CURRENT).resolve()
    return [
        Outdated(path, sum(file.stat().st_size for file in path.iterdir()))
        for path in sorted(shelf.iterdir())
        if path.is_dir() and not path.is_symlink() and path.resolve() != current
    ]
