"""Runs of users without rights on the controller, on a real Slurm: ordered through the API, submitted by the user."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.edges.job_service import JobService
from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import ApiToken, UserRole
from clusterctl.fleet.blame import Layer
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations import job_orders, job_watch
from clusterctl.operations.context import new_run_id
from clusterctl.operations.job_client import JobClient, RemoteRun
from clusterctl.operations.job_runs import listed, named
from clusterctl.operations.job_watch import WatchRequest
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from tests.edges.slurm.cluster import SlurmCluster
from tests.edges.slurm.job_site import JobSite, eventually, job_site
from tests.edges.slurm.test_job_watch import LOSES_ITS_GPU, QUICK, request
from tests.web.served import page

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]  # daemons with time limits

USER = "games"
AS_USER = (
    "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
)  # fmt: skip
"""The tests' interpreter may be in root's home: its files may be read, nothing else is the user's."""
SCRIPT = """#!/bin/bash
id -un > {folder}/ran-as
until [ -e {folder}/go ]; do sleep 0.2; done
"""


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path) as found:
        yield found


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of the user's own, outside of what only root may enter."""
    folder = Path(tempfile.mkdtemp(prefix="home", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "train.sh").write_text(SCRIPT.format(folder=folder))
    for path in (folder, folder / "train.sh"):
        shutil.chown(path, USER, USER)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def token(site: JobSite, user: str, file: Path) -> str:
    """A token for the jobs of this user; it is written into the file, which is the user's."""
    accounts = AccountFile(site.folder / "site/state/web")
    now = datetime.now(UTC)
    made = accounts.add(
        ApiToken(
            name=f"{user}-login",
            role=UserRole.VIEWER,
            digest="",
            made_at=now,
            made_by="root",
            expires_at=now + timedelta(days=1),
            jobs_of=user,
        )
    )
    file.write_text(made)
    file.chmod(0o600)
    shutil.chown(file, user, user)
    return made


def states(slurm: SlurmCluster, run: str) -> list[list[str]]:
    """User, state and comment of each job of a run that Slurm knows; it keeps those of other tests for minutes."""
    argv = ["squeue", "--states=all", "-h", "-o", "%u|%T|%k"]
    shown = subprocess.run(argv, env=slurm.environment, check=True, capture_output=True, text=True, timeout=60).stdout
    return [line.split("|") for line in shown.splitlines() if f"|clusterctl:{run}:" in line]


def test_a_killed_command_of_a_user_ends_nothing(slurm: SlurmCluster, site: JobSite, home: Path) -> None:
    """The job runs as the user who has no rights here; the service follows it to its end, and cancels the held attempt."""
    token(site, USER, home / "token")
    with page(site.context) as address:
        argv = (
            *AS_USER,
            sys.executable, "-m", "clusterctl_cli.main", "job", "run", "--server", address,
            "--token-file", str(home / "token"), "--spares", "0", "--retries", "1", "--yes", "--watch", "train.sh",
        )  # fmt: skip
        with subprocess.Popen(
            argv, cwd=home, stderr=subprocess.PIPE, text=True,
            env={**slurm.environment, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        ) as client:  # fmt: skip
            assert client.stderr is not None
            lines: list[str] = []
            while not any("is job" in line for line in lines):
                lines.append(client.stderr.readline())
                assert lines[-1], lines
            client.kill()
        eventually((home / "ran-as").exists)
        assert (home / "ran-as").read_text().strip() == USER
        (found,) = listed(site.context)
        assert (found.owner, found.actor) == (USER, f"token:{USER}-login")
        assert {(user, comment) for user, _, comment in states(slurm, found.id)} == {
            (USER, f"clusterctl:{found.id}:1"), (USER, f"clusterctl:{found.id}:2"),
        }  # fmt: skip
        (home / "go").touch()
        eventually(lambda: named(site.context, found.id).outcome is not None)
        ended = named(site.context, found.id)
        assert ended.outcome is JobOutcome.COMPLETED, ended.reason
        eventually(
            lambda: [state for _, state, comment in states(slurm, found.id) if comment.endswith(":2")] == ["CANCELLED"]
        )


def test_a_held_attempt_gets_healthy_nodes(slurm: SlurmCluster, site: JobSite) -> None:
    """After a lost GPU the service releases the user's next job on other nodes: it submits nothing itself."""
    found = ordered_by_user(site, LOSES_ITS_GPU)
    watched = job_watch.watch(
        replace(site.context, run=new_run_id()), WatchRequest(run=found.id, poll_s=0.3), Control()
    )
    assert watched.outcome is JobOutcome.COMPLETED, watched.reason
    first, second = watched.attempts
    assert (first.nodes, second.nodes, second.avoided) == (("c1", "c2"), ("c1", "c3"), ("c2",))
    assert first.ended is not None
    assert (first.ended.layer, first.ended.hosts, first.ended.from_host) == (Layer.HARDWARE, ("c2",), True)
    assert slurm.states()["c2"] == "drained"
    job = SlurmJobs().job(second.job, Deadline.after(60))
    assert SlurmJobs().names(job.node_list, Deadline.after(60)) == ("c1", "c3")
    held = [state for _, state, comment in states(slurm, found.id) if comment == f"clusterctl:{found.id}:3"]
    assert held == ["CANCELLED"]


def test_a_users_attempt_that_waits_in_vain_gets_other_nodes(slurm: SlurmCluster, site: JobSite) -> None:
    """A node is drained between the choice of nodes and the user's submission: the held job is released on others."""
    found = ordered_by_user(site, "pass", lambda: slurm.update("c2", "State=DRAIN", "Reason=disk"))
    watched = job_watch.watch(
        replace(site.context, run=new_run_id()), WatchRequest(run=found.id, poll_s=0.3), Control()
    )
    assert watched.outcome is JobOutcome.COMPLETED, watched.reason
    assert [one.nodes for one in watched.attempts] == [("c1", "c2"), ("c1", "c3")]
    held = [state for _, state, comment in states(slurm, found.id) if comment == f"clusterctl:{found.id}:3"]
    assert held == ["CANCELLED"]


def ordered_by_user(site: JobSite, body: str, between: Callable[[], None] = lambda: None) -> SupervisedRun:
    """A run that root orders as a user does, and submits; `between` happens after its nodes are chosen."""
    wanted = request(site, body, QUICK)
    found = job_orders.order(site.context, "root", wanted, Control())
    assert found.last is not None
    between()
    client = JobClient(JobService("http://127.0.0.1:1", "unused"), SlurmJobs())
    assert client.submit(wanted, RemoteRun(name=found.id, nodes=found.last.nodes))
    return found
