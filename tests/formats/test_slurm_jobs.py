"""scontrol's and sacct's text of one job: recorded of Slurm 22.05 (names changed), and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.slurm_jobs import SACCT_FIELDS, SEPARATOR, is_one_job, parse_sacct, parse_scontrol_job

TEXT = (Path(__file__).parent / "data/scontrol_job.txt").read_text()


def test_a_running_job() -> None:
    """The job's name holds what looks like a field; the field of its own line counts."""
    job = parse_scontrol_job(TEXT)
    assert (job.job, job.state, job.over, job.node_list, job.batch_host) == ("1", "RUNNING", False, "c[2-3]", "c2")
    assert job.user == "ann"
    assert (job.uid, job.gid, job.exit_code, job.signal, job.restarts) == (1001, 200, 0, None, 0)
    assert job.started == datetime(2026, 11, 27, 22, 19, 53, tzinfo=UTC)
    assert job.ended is None
    assert (job.stdout, job.work_dir, job.comment) == ("/home/ann/logs/1.out", "/home/ann", "clusterctl:abc:1")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("JobName=a b", "JobName=a\n   StdOut=/etc/shadow\n", "stdout occurs twice"),
        ("JobName=a b", "JobName=a\n   Priority=0 ", "priority occurs twice"),
        ("JobId=1 ", "JobId=1 x\nJobId=2 ", "job occurs twice"),
        ("   JobState=RUNNING", "   State=RUNNING", "state is missing"),
        ("SubmitTime=2026-11-27T22:19:51+0000", "SubmitTime=yesterday", "not a time: 'yesterday'"),
    ],
)
def test_a_text_that_is_not_clear_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_scontrol_job(TEXT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("None", ""),
        ("Resources", "Resources"),
        ("ReqNodeNotAvail,_UnavailableNodes:c[2-3]", "ReqNodeNotAvail"),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", "ReqNodeNotAvail"),
        ("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions", ""),
        ("launch_failed_requeued_held", ""),
    ],
)
def test_why_a_job_waits(shown: str, reason: str) -> None:
    """A code, with a text or without; a text alone is no code. A priority of 0 is that of a held job."""
    text = TEXT.replace("JobState=RUNNING Reason=None", f"JobState=PENDING Reason={shown}")
    job = parse_scontrol_job(text)
    assert (job.state, job.reason, job.held) == ("PENDING", reason, False)
    assert parse_scontrol_job(text.replace("Priority=4294901759", "Priority=0")).held


def test_a_time_without_a_zone_is_utc() -> None:
    """The commands run with TZ=UTC: sacct of 22.05 prints no zone."""
    assert parse_scontrol_job(TEXT.replace("+0000", "")) == parse_scontrol_job(TEXT)


def line(**values: str) -> str:
    known = {
        "JobIDRaw": "7", "State": "NODE_FAIL", "ExitCode": "0:15", "Submit": "2026-11-01T12:00:00+0100",
        "Start": "2026-11-01T12:00:05+0100", "End": "2026-11-01T13:00:00+0100", "UID": "1001", "GID": "200",
        "NodeList": "n[1-2]", "WorkDir": "/home/ann|x", "User": "ann",
    }  # fmt: skip
    return SEPARATOR.join({**known, **values}[name] for name in SACCT_FIELDS)


def test_attempts_of_a_requeued_job_share_its_id() -> None:
    """The time of their submission distinguishes them."""
    later = line(State="CANCELLED by 1000", Submit="2026-11-01T13:05:00+0100", ExitCode="3:0", NodeList="None assigned")
    first, second = parse_sacct(f"{later}\n{line()}\n")
    assert (first.state, first.exit_code, first.signal, first.node_list) == ("NODE_FAIL", 0, 15, "n[1-2]")
    assert first.user == "ann"
    assert first.started == datetime(2026, 11, 1, 11, 0, 5, tzinfo=UTC)
    assert (second.state, second.exit_code, second.signal, second.node_list) == ("CANCELLED", 3, None, "")


def test_a_line_with_another_number_of_fields_is_refused() -> None:
    with pytest.raises(ParseError, match="not a line of 11 fields"):
        parse_sacct("7|FAILED\n")


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("#!/bin/bash\n#SBATCH --account=a --time=60\nsrun x\n", True),
        ("#!/bin/bash\n#SBATCH -A array -J job-a\n\n#SBATCH --time=60\n", True),
        ("#!/bin/bash\nsrun x\n#SBATCH --array=0-3\n", True),
        ("#!/bin/bash\n##SBATCH --array=0-3\n# --array\n", True),
        ("#!/bin/bash\n#SBATCH --time=60 --array=0-3\n", False),
        ("#!/bin/bash\n# note\n#SBATCH --arr 0-3\n", False),
        ("#!/bin/bash\n#SBATCH -a0-3\n", False),
        ("#!/bin/bash\n#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n", False),
    ],
)
def test_a_script_of_several_jobs(text: str, one: bool) -> None:
    """As sbatch reads it: up to the first command, and no further."""
    assert is_one_job(text) is one
