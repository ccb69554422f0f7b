"""What keeps a rank off the processor, as its node reports it: made-up files of /proc and of cgroups, real signals."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from clusterctl.formats.job_facts import RankState, parse_processes
from clusterctl_burnin.node.job_evidence import PROC, Report, hierarchies, periods, processes
from lab.tests.lab_kit import eventually


def group(folder: Path, passed: int, held: int) -> None:
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text(f"nr_periods {passed}\nnr_throttled {held}\nthrottled_usec 1\n")


@pytest.mark.parametrize(
    ("cgroup", "root"),
    [("0::/slurm/job_7/step_0\n", ""), ("3:cpuset:/\n1:cpu,cpuacct:/slurm/job_7/step_0\n0::/\n", "cpu,cpuacct")],
)
def test_the_quota_of_any_group_above_counts(tmp_path: Path, cgroup: str, root: str) -> None:
    """Of both kinds of cgroups: the one that holds the process back most often."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text(cgroup)
    group(tmp_path / "sys" / root / "slurm/job_7/step_0", 100, 3)
    (tmp_path / "sys" / root / "slurm/job_7/cpu.stat").write_text("nr_periods 90\nnr_throttled 80\n")
    assert periods(tmp_path / "7", {"cpu" if root else "0": tmp_path / "sys" / root}) == (90, 80)


def test_a_process_that_has_ended_has_no_quota(tmp_path: Path) -> None:
    """It is no error."""
    assert periods(tmp_path / "7", {"0": tmp_path}) == (0, 0)


def test_the_hierarchies_are_where_the_kernel_has_mounted_them(tmp_path: Path) -> None:
    """Not where most distributions mount them: hybrid, unified alone, and none of it."""
    table = tmp_path / "mountinfo"
    table.write_text(
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 / /run/cpu rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct\n"
        "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
    )
    assert hierarchies(table) == {"0": Path("/sys/fs/cgroup/unified"), "cpu": Path("/run/cpu")}
    table.write_text("24 1 0:22 / / rw - ext4 /dev/vda rw\n")
    assert hierarchies(table) == hierarchies(tmp_path / "none") == {}


def test_a_stopped_process_is_seen(tmp_path: Path) -> None:
    """By SIGSTOP, and not one that sleeps; the controller reads what the node writes."""
    ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(2)]
    try:
        os.kill(ranks[1].pid, signal.SIGSTOP)
        stat = PROC / str(ranks[1].pid) / "stat"
        assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        report = Report(60.0)
        processes(report, {0: ranks[0].pid, 1: ranks[1].pid})
        (file,) = report.files
        text = zlib.decompress(base64.b64decode(file["content"])).decode()
        assert json.loads(text)["version"] == 1
        assert parse_processes(text, where=file["name"]) == {0: RankState(), 1: RankState(stopped=True)}
    finally:
        for one in ranks:
            one.kill()
            one.wait()
