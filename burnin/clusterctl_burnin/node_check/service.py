"""Slurm's programs on a node: health check, prolog and epilog. Each drains the node by itself, or leaves it alone.

Slurm drains a node whose prolog or epilog ends with another code than 0, without a brake. So the prolog refuses
a job only where the node is out of work already, and the epilog ends with 0.
"""

from __future__ import annotations

import json
import os
import syslog
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.peer_text import visible_line
from clusterctl_burnin.node_check.epilog import Cleaned, EpilogJob, Places, clean, read_gpu_memory
from clusterctl_burnin.node_check.slurm import (
    Drain,
    Drainer,
    Held,
    NotAnsweredError,
    Scontrol,
    other_jobs,
    squeue,
)

CHECKS_S: Mapping[str, float] = {"check": 55.0, "health": 48.0, "prolog": 6.5}
"""Seconds after which the probes are ended, by command: Slurm ends a health check after 60 s, and a job waits for the
prolog.
"""
SLURM_S: Mapping[str, float] = {"health": 8.0, "prolog": 3.0, "epilog": 8.0}
"""Seconds for Slurm's answers, by command."""
REFUSED = 75
"""Exit code of a prolog that refuses the job; no other end of the program, such as a traceback, has it."""
METRIC = "clusterctl_drain_held"
METRIC_FILE = "clusterctl_drain.prom"
_HELP = f"""\
# HELP {METRIC} Whether a failed check has not drained this node: by="brake" where too many nodes failed it.
# TYPE {METRIC} gauge
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`percent`: share of the nodes that one check may drain within an hour; `textfile`: node_exporter's folder."""

    node: str
    percent: float = 2.0
    slurm_seconds: float = 3.0
    scontrol: str = "/usr/bin/scontrol"
    squeue: str = "/usr/bin/squeue"
    nvidia_smi: str = "/usr/bin/nvidia-smi"
    textfile: Path = Path("/var/lib/prometheus/node-exporter")
    report: Path = Path("/run/clusterctl-node.txt")
    places: Places = field(default_factory=Places)


def first_failure(findings: Sequence[Finding]) -> Finding | None:
    """Return the first failed check that is no consequence of another; None where none failed."""
    return next((one for one in findings if one.verdict is Verdict.FAIL and not one.root), None)


def now() -> datetime:
    return datetime.now(UTC)


def health(settings: Settings, findings: Sequence[Finding]) -> int:
    """Drain the node for the first failure; always return 0: Slurm ignores the code."""
    failure = first_failure(findings)
    outcome = _drained(settings, failure.check, failure.cause) if failure is not None else None
    write_metric(settings.textfile, outcome)
    return 0


def prolog(settings: Settings, findings: Sequence[Finding]) -> int:
    """Judge the node before a job; return `REFUSED` only where a check failed and the node is out of work.

    Slurm then runs the job on other nodes.
    """
    failure = first_failure(findings)
    if failure is None:
        return 0
    outcome = _drained(settings, failure.check, failure.cause)
    return REFUSED if outcome.held in (None, Held.OUT_ALREADY) else 0


def epilog(settings: Settings, environment: Mapping[str, str]) -> int:
    """Clean the node up after a job, and drain it for what cannot be cleaned up; always return 0."""
    job = job_of(settings, environment)
    if job is None:
        log(syslog.LOG_ERR, "epilog: SLURM_JOB_ID and SLURM_JOB_UID are not set, so nothing was cleaned up")
        return 0
    done = clean(job, settings.places, lambda: read_gpu_memory(settings.nvidia_smi, settings.slurm_seconds))
    log(syslog.LOG_INFO, f"epilog of job {job.number}: {summary(job, done)}")
    _keep_report(settings, job, done)
    for check, cause in done.failed.items():
        _drained(settings, check, cause)
    return 0


def job_of(settings: Settings, environment: Mapping[str, str]) -> EpilogJob | None:
    """Return the job that ended; None where Slurm's variables are not there."""
    number, user = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_JOB_UID", "")
    if not (number.isascii() and number.isdigit() and user.isascii() and user.isdigit()):
        return None
    others: Mapping[str, int] | None
    try:
        others = other_jobs(squeue(settings.squeue, settings.node, settings.slurm_seconds), number)
    except (NotAnsweredError, ValueError) as error:
        log(syslog.LOG_WARNING, f"epilog of job {number}: {error}: nothing is removed")
        others = None
    return EpilogJob(number=number, user=int(user), others=others)


def summary(job: EpilogJob, done: Cleaned) -> str:
    """Return what was done, in one line."""
    if not job.owns_user:
        return "the user's processes and files were left alone"
    return (
        f"{done.killed} processes ended, {len(done.left)} left, {done.removed} entries removed, "
        f"{len(done.kept)} logs kept, {len(done.errors)} errors"
    )


def _keep_report(settings: Settings, job: EpilogJob, done: Cleaned) -> None:
    """Write what was done next to the logs of the job, where there was something to do."""
    if not (done.killed or done.removed or done.failed or done.errors):
        return
    folder = settings.places.kept / job.number
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "epilog.json").write_text(json.dumps(asdict(done), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        log(syslog.LOG_ERR, f"epilog of job {job.number}: its report cannot be written: {error.strerror}")


def _drained(settings: Settings, check: str, cause: str) -> Drain:
    """Drain the node for a failed check where the brake lets it, and log what became of it."""
    until = time.monotonic() + settings.slurm_seconds
    drainer = Drainer(Scontrol(settings.scontrol, until), settings.node, settings.percent, now)
    outcome = drainer.drain(check)
    level = syslog.LOG_ALERT if outcome.held is Held.BRAKE else syslog.LOG_ERR
    log(level, f"{settings.node}: {check} failed ({cause}): {outcome_text(outcome)}")
    return outcome


def outcome_text(outcome: Drain) -> str:
    """Return what became of an order to drain, in one line."""
    if outcome.held is None:
        return f"drained, reason {outcome.reason}"
    if outcome.held is Held.BRAKE:
        counted = f"{outcome.failed} nodes failed this check within the hour, and {outcome.allowed} may be drained"
        return f"NOT drained: {counted}; look for a bad check or a common cause"
    return f"not drained: {outcome.held.value}{f' ({outcome.text})' if outcome.text else ''}"


def log(level: int, text: str) -> None:
    """Write one line into the system's log."""
    syslog.openlog("clusterctl-node", 0, syslog.LOG_DAEMON)
    syslog.syslog(level, visible_line(text))


def write_metric(folder: Path, outcome: Drain | None) -> None:
    """Write whether the node should be drained and is not, for Prometheus; nothing where the folder is not there."""
    held = outcome.held if outcome is not None else None
    sample = ""
    if outcome is not None and held is not None and held is not Held.OUT_ALREADY:
        sample = f'{METRIC}{{check="{outcome.check}",by="{held.name.lower()}"}} 1\n'
    part = folder / f".{METRIC_FILE}.{os.getpid()}"
    try:
        part.write_text(_HELP + sample, encoding="utf-8")
        part.chmod(0o644)
        part.replace(folder / METRIC_FILE)
    except OSError:
        part.unlink(missing_ok=True)
