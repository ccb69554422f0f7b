"""What an epilog removes after a job, what it keeps, and what it leaves alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from clusterctl_burnin.node_check.epilog import GPU_MIB, Cleaned, EpilogJob, Places, clean, read_gpu_memory
from clusterctl_burnin.node_check.service import Settings, epilog, job_of
from clusterctl_burnin.node_check.slurm import other_jobs

USER, OTHER = 61_377, 61_378
"""Accounts that no machine has."""
NO_GPUS: Mapping[int, int] = {}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Two temporary folders that every user may write to."""
    for name in ("shm", "tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o1777)
    return Places(temporary=(tmp_path / "shm", tmp_path / "tmp"), kept=tmp_path / "kept")


def job(user: int = USER, others: Mapping[str, int] | None = NO_GPUS) -> EpilogJob:
    return EpilogJob(number="7", user=user, others=others)


def own(path: Path, text: str = "x", user: int = USER) -> Path:
    path.write_text(text)
    os.chown(path, user, user)
    return path


def cleaned(job: EpilogJob, places: Places, gpus: Mapping[int, int] | None = NO_GPUS) -> Cleaned:
    return clean(job, places, lambda: gpus)


@pytest.fixture
def left_behind() -> Iterator[list[subprocess.Popen[bytes]]]:
    """A process of the user that ignores the polite signal, and one of another user."""
    argv = ["/bin/sh", "-c", "trap '' TERM; echo; exec sleep 600"]
    found = []
    for user in (USER, OTHER):
        one = subprocess.Popen(argv, user=user, group=user, stdout=subprocess.PIPE, cwd="/")
        assert one.stdout is not None
        one.stdout.readline()
        found.append(one)
    yield found
    for one in found:
        one.kill()
        one.wait()


@as_root
def test_processes_of_the_user_end_and_no_others(places: Places, left_behind: list[subprocess.Popen[bytes]]) -> None:
    """Also one that ignores SIGTERM."""
    mine, other = left_behind
    done = cleaned(job(), places)
    assert (done.killed, done.left, done.failed) == (1, [], {})
    assert mine.wait(600) == -signal.SIGKILL
    assert other.poll() is None


@as_root
def test_files_of_the_user_go_and_logs_are_kept(places: Places) -> None:
    """Folders with all that is in them; files of others and links to them stay."""
    shm, tmp = places.temporary
    own(shm / "nccl-1")
    own(tmp / "train.log", "loss nan\n")
    folder = tmp / "run"
    folder.mkdir()
    os.chown(folder, USER, USER)
    own(folder / "nccl_trace_rank_3", "dump")
    foreign = own(tmp / "other", user=OTHER)
    secret = tmp / "root.log"
    secret.write_text("secret")
    link = tmp / "link.log"
    link.symlink_to(secret)
    os.lchown(link, USER, USER)
    done = cleaned(job(), places)
    assert sorted(path.name for folder in places.temporary for path in folder.iterdir()) == ["other", "root.log"]
    assert foreign.read_text() == "x"
    assert done.removed == 4
    kept = {path.read_text() for path in (places.kept / "7").iterdir()}
    assert kept == {"loss nan\n", "dump"}
    assert all(path.stat().st_mode & 0o77 == 0 for path in (places.kept / "7").iterdir())


@as_root
@pytest.mark.parametrize(
    "one",
    [
        job(others=None),
        job(others={"8": USER}),
        EpilogJob(number="7", user=0, others={}),
        EpilogJob(number="7", user=101, others={}),
    ],
)
def test_what_another_job_may_need_is_left_alone(places: Places, one: EpilogJob) -> None:
    """Where the user has another job here, where Slurm does not report the jobs, and for the system's own accounts."""
    file = own(places.temporary[0] / "train.log", user=one.user)
    done = cleaned(one, places)
    assert file.exists()
    assert (done.killed, done.removed, done.kept) == (0, 0, [])


def test_memory_of_gpus_without_a_job_is_a_failure(places: Places) -> None:
    """By GPU; not while another job runs here, and not where it was not measured."""
    used = {0: 3, 3: GPU_MIB + 1}
    assert cleaned(job(), places, used).failed == {
        "epilog_gpu_memory": f"memory in use without a job: GPU 3: {GPU_MIB + 1} MiB"
    }
    assert cleaned(job(others={"8": OTHER}), places, used).failed == {}
    assert cleaned(job(), places, None).failed == {}


@pytest.mark.parametrize(
    ("printed", "memory"),
    [("0, 4\n1, 70000\n", {0: 4, 1: 70000}), ("", {}), ("0, [N/A]\n", None), ("No devices were found\n", None)],
)
def test_memory_is_read_from_nvidia_smi(tmp_path: Path, printed: str, memory: Mapping[int, int] | None) -> None:
    """What is no number is not measured."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{printed}'\n")
    program.chmod(0o755)
    assert read_gpu_memory(str(program), 60) == memory
    assert read_gpu_memory(str(tmp_path / "none"), 60) is None


def test_old_logs_are_forgotten(places: Places) -> None:
    """Two weeks after the job."""
    for name, at in (("3", 0), ("4", 4_000_000_000)):
        (places.kept / name).mkdir(parents=True)
        os.utime(places.kept / name, (at, at))
    cleaned(job(others=None), places)
    assert [path.name for path in places.kept.iterdir()] == ["4"]


def test_other_jobs_are_read_from_squeue() -> None:
    assert other_jobs("7 1000\n8 1001\n\n9 1000\n", "7") == {"8": 1001, "9": 1000}
    with pytest.raises(ValueError, match="invalid literal"):
        other_jobs("slurm_load_jobs error\n", "7")


def settings(folder: Path, places: Places, squeue: str) -> Settings:
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{squeue}\n")
    program.chmod(0o755)
    none = str(folder / "none")
    return Settings(node="n1", slurm_seconds=100, squeue=str(program), scontrol=none, nvidia_smi=none, places=places)


@as_root
def test_an_epilog_is_called_by_slurms_variables(tmp_path: Path, places: Places) -> None:
    """It writes down what it did, and always ends with 0: Slurm would drain the node for anything else."""
    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": str(USER)}
    own(places.temporary[0] / "left")
    assert epilog(settings(tmp_path, places, "exit 1"), environment) == 0
    assert (places.temporary[0] / "left").exists(), "Slurm did not report the jobs of the node"
    assert epilog(settings(tmp_path, places, "echo 7 61377; echo 9 1000"), environment) == 0
    assert not (places.temporary[0] / "left").exists()
    assert json.loads((places.kept / "7/epilog.json").read_text())["removed"] == 1
    assert epilog(settings(tmp_path, places, "true"), {}) == 0
    assert job_of(settings(tmp_path, places, "true"), {"SLURM_JOB_ID": "../7", "SLURM_JOB_UID": "1"}) is None
    shutil.rmtree(places.kept)
