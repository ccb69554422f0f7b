"""One job of Slurm: `scontrol show job`, and `sacct` once scontrol has forgotten it.

scontrol(1), sacct(1): https://slurm.schedmd.com/scontrol.html. The text is the base: `--json` needs a build with it,
and its schema changed often. Job names may hold line breaks, so that a user could write a line that looks like a field;
a text with a field twice is refused.

A reason is a code of `enum job_state_reason` (slurm.h, src/common/job_state_reason.c), at times with a text after a
comma, or a text alone, which is no code: Slurm prints that with underscores for spaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.formats.times import in_utc

IN_UTC = ("TZ=UTC", "SLURM_TIME_FORMAT=standard")
"""Environment of the commands: Slurm's times have no zone, and sacct of 22.05 cannot print one."""
SEPARATOR = "\x1f"
SACCT_FIELDS = ("JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "UID", "GID", "NodeList", "WorkDir", "User")
JOB_ID = re.compile(r"[0-9]{1,12}(?:_[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_FIELDS = re.compile(
    r"^(?:JobId=(?P<job>\d{1,12})\b"
    r"|   UserId=(?P<user>\S{1,256}?)\((?P<uid>\d{1,10})\) GroupId=\S{1,256}?\((?P<gid>\d{1,10})\)"
    r"|   Priority=(?P<priority>\d{1,10}) "
    r"|   JobState=(?P<state>[A-Z_]{1,40})\b(?: Reason=(?P<reason>[A-Za-z]{1,40})(?=[ ,]))?"
    r"|   Requeue=\d Restarts=(?P<restarts>\d{1,9}) .{0,40}?ExitCode=(?P<exit>\d{1,5}):(?P<signal>\d{1,5})$"
    r"|   SubmitTime=(?P<submitted>\S{1,40})"
    r"|   StartTime=(?P<started>\S{1,40}) EndTime=(?P<ended>\S{1,40})"
    r"|   NodeList=(?P<nodes>\S{0,100000})$"
    r"|   BatchHost=(?P<batch>\S{0,253})$"
    r"|   WorkDir=(?P<work>.{0,4096})$"
    r"|   StdErr=(?P<stderr>.{0,4096})$"
    r"|   StdOut=(?P<stdout>.{0,4096})$"
    r"|   Comment=(?P<comment>.{0,4096})$)",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^#SBATCH\s(?P<options>.*)$")
_ARRAY = re.compile(r"(?:^|\s)(?:-a|--arr?a?y?[\s=])")
_SEVERAL_JOBS = re.compile(r"^(?:hetjob|packjob)\b")
_NOTHING = frozenset({"(null)", "None assigned", "Unknown", "N/A", "None"})


def is_one_job(script: str) -> bool:
    """Return whether a batch script asks for one job: no array, and no components. sbatch(1) reads up to a command."""
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            return True
        if match := _DIRECTIVE.match(line):
            options = match["options"].partition("#")[0].strip()
            if _ARRAY.search(options) or _SEVERAL_JOBS.match(options):
                return False
    return True


def parse_scontrol_job(text: str) -> ScheduledJob:
    """Return the job. Raises `ParseError` for several jobs, for a field that occurs twice, and for one that lacks."""
    found: dict[str, str] = {}
    for match in _FIELDS.finditer(text):
        for name, value in match.groupdict().items():
            if value is None:
                continue
            if name in found:
                raise ParseError(f"the field {name} occurs twice: several jobs, or a job name with line breaks")
            found[name] = "" if value.strip() in _NOTHING else value.strip()
    for name in ("job", "state", "submitted"):
        if not found.get(name):
            raise ParseError(f"the field {name} is missing")
    return ScheduledJob(
        job=found["job"],
        state=found["state"],
        node_list=found.get("nodes", ""),
        batch_host=found.get("batch", ""),
        uid=_number(found, "uid"),
        gid=_number(found, "gid"),
        exit_code=_number(found, "exit"),
        signal=_number(found, "signal") or None,
        restarts=_number(found, "restarts") or 0,
        submitted=_time(found["submitted"]),
        started=_time(found.get("started", "")),
        ended=_time(found.get("ended", "")),
        stdout=found.get("stdout", ""),
        stderr=found.get("stderr", ""),
        work_dir=found.get("work", ""),
        comment=found.get("comment", ""),
        user=found.get("user", ""),
        reason=found.get("reason", ""),
        held=found.get("priority") == "0",
    )


def parse_sacct(text: str) -> tuple[ScheduledJob, ...]:
    """Return the attempts of a job in the order of their submission (`sacct -X -D`). Raises `ParseError`."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split(SEPARATOR)
        if len(cells) != len(SACCT_FIELDS):
            raise ParseError(f"not a line of {len(SACCT_FIELDS)} fields: {line[:100]!r}", where=f"line {number}")
        bare = (cell.strip() for cell in cells)
        values = {name: "" if cell in _NOTHING else cell for name, cell in zip(SACCT_FIELDS, bare, strict=True)}
        found.append(_sacct_job(values))
    return tuple(sorted(found, key=lambda one: one.submitted or datetime.min.replace(tzinfo=UTC)))


def _sacct_job(values: Mapping[str, str]) -> ScheduledJob:
    code, _, ended_by = values["ExitCode"].partition(":")
    return ScheduledJob(
        job=values["JobIDRaw"],
        state=(values["State"].split() or [""])[0],
        node_list=values["NodeList"],
        uid=_number(values, "UID"),
        gid=_number(values, "GID"),
        exit_code=_whole(code),
        signal=_whole(ended_by) or None,
        submitted=_time(values["Submit"]),
        started=_time(values["Start"]),
        ended=_time(values["End"]),
        work_dir=values["WorkDir"],
        user=values["User"],
    )


def _number(found: Mapping[str, str], name: str) -> int | None:
    return _whole(found.get(name, ""))


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _time(text: str) -> datetime | None:
    """Return the time, in UTC where it has no zone; None where there is none. Raises `ParseError`."""
    if not text or text in _NOTHING:
        return None
    try:
        found = datetime.fromisoformat(text)
        return in_utc(found if found.tzinfo else found.replace(tzinfo=UTC))
    except ValueError:
        raise ParseError(f"not a time: {text[:40]!r}") from None
