"""A folder that evidence of one job is written to, in the layout that `job_logs` reads. For its owner only."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from clusterctl.edges.disk import disk_explained, write_once
from clusterctl.edges.job_logs import FACTS, MISSING
from clusterctl.fleet.errors import UsageError

log = logging.getLogger(__name__)


class JobFolder:
    """A new folder. Raises `UsageError` where it holds files: evidence of two jobs would be judged as one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_explained("the folder cannot be made", path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise UsageError("is not empty", where=str(path), remedy="name a folder that is empty or not there yet")

    def add(self, host: str, files: Mapping[str, bytes]) -> None:
        """Write the files of one host. A file that is there is kept."""
        for name, content in files.items():
            write_once(self.path / host / name, content)

    def close(self, facts: Mapping[str, Any], missing: tuple[str, ...]) -> None:
        """Write what the scheduler recorded, and what could not be read."""
        write_once(self.path / MISSING, json.dumps(list(missing)).encode())
        write_once(self.path / FACTS, json.dumps(facts).encode())


def old_folders(base: Path, before: datetime) -> tuple[Path, ...]:
    """Return what nothing has written to since `before`: collections, and progress of jobs. Links are left alone."""
    return tuple(sorted(_old(base, before.timestamp()))) if base.is_dir() else ()


def _old(base: Path, before: float) -> Iterator[Path]:
    for job in base.iterdir():
        if job.is_symlink() or not job.is_dir():
            continue
        for entry in job.iterdir():
            if entry.lstat().st_mtime < before and not entry.is_symlink():
                yield entry


def remove_folders(found: tuple[Path, ...]) -> int:
    """Remove these, and folders of jobs that are empty then. Return how many are gone; a failure is logged."""
    removed = 0
    for path in found:
        try:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            removed += 1
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
        except OSError as error:
            log.warning("cannot remove %s: %s", path, error)
    return removed
