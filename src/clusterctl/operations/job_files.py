"""Files of supervised runs on the controller: the folder of each attempt, and how far a watcher has read its log."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from clusterctl.edges.disk import named_path_explained, write_over
from clusterctl.edges.job_folder import old_folders
from clusterctl.edges.site import Site
from clusterctl.jobs.progress import JobProgress
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_inputs import attempt_path
from clusterctl.operations.operation import current_time
from clusterctl.operations.site_facts import state_dir

_KEPT = 2000
_TIMES = frozenset({"first_at", "last_at", "active_at", "saved_at", "saving_since"})


def attempt_folder(folder: str, attempt: int) -> Path:
    """Make and return the folder for an attempt's logs, in one that controller and nodes share."""
    path = attempt_path(folder, attempt)
    with named_path_explained("the folder for the logs cannot be made", path):
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    return path


def script_text(script: Path) -> str:
    """Return the text of a batch script. Raises `UsageError` where it cannot be read."""
    with named_path_explained("the script cannot be read", script):
        return script.read_text(encoding="utf-8", errors="replace")


def outdated(site: Site) -> tuple[Path, ...]:
    """Return what was collected of jobs longer ago than the site keeps it (`jobs.keep_days`)."""
    before = current_time() - timedelta(days=site.settings.jobs.keep_days)
    return old_folders(state_dir(site) / "jobs", before)


def write_progress(context: SiteContext, job: str, offset: int, progress: JobProgress) -> None:
    """Keep how far the log of a job was read, and what was seen in it: for a watcher that is started again."""
    values: dict[str, Any] = {one.name: getattr(progress, one.name) for one in fields(progress)}
    values |= {name: values[name].isoformat() for name in _TIMES if values[name] is not None}
    values["seconds"] = list(progress.seconds)[-_KEPT:]
    write_over(_file(context, job), json.dumps({"version": 1, "offset": offset, "progress": values}).encode())


def read_progress(context: SiteContext, job: str) -> tuple[int, JobProgress]:
    """Return the offset and the progress; from the beginning where none is kept, or the file is damaged."""
    try:
        found = json.loads(_file(context, job).read_bytes())
        values: Mapping[str, Any] = found["progress"]
        times = {name: datetime.fromisoformat(values[name]) for name in _TIMES if values[name] is not None}
        kept = {**values, **times, "seconds": deque((float(one) for one in values["seconds"]), maxlen=20_000)}
        return int(found["offset"]), JobProgress(**kept)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, JobProgress()


def _file(context: SiteContext, job: str) -> Path:
    return state_dir(context.site) / "jobs" / job / "progress.json"
