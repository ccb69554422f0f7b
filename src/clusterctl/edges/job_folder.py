"""A folder that evidence of one job is written to, in the layout that `job_logs` reads. For its owner only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterctl.edges.disk import disk_explained, write_once
from clusterctl.edges.job_logs import FACTS, MISSING
from clusterctl.fleet.errors import UsageError


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
