"""Jobs of a fabric manager: what it does for an action, such as new firmware for switches."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusterctl.fleet.peer_text import visible_line

_TEXT = 400


class JobStatus(enum.Enum):
    """As UFM writes it (https://github.com/Mellanox/ufm_sdk_3.0, utils/job_polling.py). UNKNOWN: another text."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    WARNINGS = "Completed With Warnings"
    ERRORS = "Completed With Errors"
    UNKNOWN = ""

    @property
    def is_over(self) -> bool:
        """Return whether the job is known to have ended."""
        return self in (JobStatus.COMPLETED, JobStatus.WARNINGS, JobStatus.ERRORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerJob:
    """One job, or a part of one. Texts are as the manager has them.

    status_text  its status, also where that is unknown
    objects      what it is about
    progress     %; None where the manager does not have it
    """

    id: str
    status: JobStatus
    status_text: str = ""
    operation: str = ""
    description: str = ""
    objects: str = ""
    summary: str = ""
    created: str = ""
    updated: str = ""
    progress: int | None = None

    def __post_init__(self) -> None:
        """Make the texts visible, bounded lines: a switch's own output may be among them."""
        for name in ("status_text", "operation", "description", "objects", "summary", "created", "updated"):
            object.__setattr__(self, name, visible_line(getattr(self, name), _TEXT))
