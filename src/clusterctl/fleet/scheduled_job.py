"""A job as its scheduler records it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

ENDED_STATES = frozenset(
    {
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
        "TIMEOUT", "SPECIAL_EXIT", "REVOKED",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """One attempt of a job.

    state       in Slurm's words (`NODE_FAIL`), without what follows (`CANCELLED by 1000`)
    node_list   the nodes as a hostlist (`n[1-4,7]`); empty before the job starts
    batch_host  the node that runs the batch script
    restarts    how many times the scheduler has started the job again
    stdout, stderr, work_dir  paths on the nodes, which the user chose: files there are read with the user's rights
    uid, gid    None where unknown: nothing of the user is read then
    comment     the job's comment; clusterctl marks its own submissions by it
    user        name of the user who submitted it; empty where the scheduler knows none
    reason      why it waits, as a code of the scheduler (`ReqNodeNotAvail`); empty where it gives a text alone
    held        it waits for an order: a user or an administrator holds it
    """

    job: str
    state: str
    node_list: str = ""
    batch_host: str = ""
    uid: int | None = None
    gid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    submitted: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    stdout: str = ""
    stderr: str = ""
    work_dir: str = ""
    comment: str = ""
    user: str = ""
    reason: str = ""
    held: bool = False

    @property
    def over(self) -> bool:
        """True where this attempt has come to its end."""
        return self.state in ENDED_STATES
