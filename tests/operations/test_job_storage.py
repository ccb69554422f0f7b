"""Which job floods the storage: rates of its nodes added up, the most first; what was not read is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import cast

import pytest

from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.formats.host.storage_clients import StorageCounters, StorageReadings
from clusterctl.jobs.storage_load import StorageRates, rates
from clusterctl.operations.adapters import Access
from clusterctl.operations.job_storage import StorageRequest, StorageResult, run
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Jobs
from tests.edges.slurm.job_site import JobSite, LocalAdapters, job_site

NODES = ("c1", "c2", "c3", "c4")
JOBS = {"7": "c1,c2", "8": "c3", "9": "c3", "10": "c4"}
HOME, DATASETS = "10.0.0.9:/home", "10.0.0.9:/datasets"
MOUNT = (
    "device {name} mounted on /mnt with fstype nfs4 statvers=1.1\n\tbytes:\t0 0 0 0 {read} {written} 0 0\n"
    "\tper-op statistics\n\t        READ: 5 5 0 0 0 0 0 0\n\t      LOOKUP: {metadata} 1 0 0 0 0 0 0\n"
)


class FakeJobs:
    """Meets what is asked here of `ports.jobs.Jobs`: four running jobs, and one that is over."""

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        state = "RUNNING" if job in JOBS else "COMPLETED"
        return ScheduledJob(
            job=job, state=state, node_list=JOBS.get(job, ""), started=datetime(2026, 11, 1, tzinfo=UTC)
        )

    def names(self, node_list: str, deadline: Deadline) -> tuple[str, ...]:
        return tuple(node_list.split(","))


class FakeAdapters(LocalAdapters):
    @cached_property
    def jobs(self) -> Jobs:
        return cast("Jobs", FakeJobs())


@dataclass
class Cluster:
    site: JobSite

    def mounts(self, node: str, *growing: tuple[str, int, int, int]) -> None:
        """Let the node's program answer with these file systems: in 10 s so many operations, bytes read and written."""
        before = "".join(MOUNT.format(name=name, metadata=100, read=1000, written=1000) for name, *_ in growing)
        after = "".join(
            MOUNT.format(name=name, metadata=100 + more, read=1000 + read, written=1000 + written)
            for name, more, read, written in growing
        )
        answer = {"version": 1, "seconds": 10.0, "before": {"mountstats": before}, "after": {"mountstats": after}}
        folder = self.site.hosts.folder / node
        (folder / "answer.json").write_text(json.dumps(answer))
        program = folder / "bin/python3"
        program.write_text(f"#!/bin/sh\ncat > /dev/null\ncat {folder}/answer.json\n")
        program.chmod(0o755)

    def asked(self, *jobs: str) -> StorageResult:
        return run(self.site.context, StorageRequest(jobs=jobs, seconds=10.0), Control())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with job_site(tmp_path, NODES) as site:

        def connect(of_site: Site, access: Access) -> FakeAdapters:
            return FakeAdapters(of_site, access, site.hosts)

        yield Cluster(JobSite(replace(site.context, connect=connect), site.hosts, site.folder))


def test_the_job_that_floods_the_storage_comes_first(cluster: Cluster) -> None:
    """Rates of all its nodes together, by file system; a job with more bytes and fewer operations comes behind it."""
    cluster.mounts("c1", (HOME, 50_000, 0, 0), (DATASETS, 10, 4_000_000_000, 0))
    cluster.mounts("c2", (HOME, 30_000, 0, 1000))
    cluster.mounts("c4", (DATASETS, 20, 9_000_000_000, 0))
    found = cluster.asked("10", "7")
    assert not found.unread
    assert [(one.jobs, one.filesystem, one.nodes) for one in found.loads] == [
        (("7",), HOME, 2),
        (("10",), DATASETS, 1),
        (("7",), DATASETS, 1),
    ]
    assert found.loads[0].rates == StorageRates(metadata=8000.0, read_bytes=0.0, written_bytes=100.0)
    assert found.loads[1].rates.read_bytes == 9e8


def test_jobs_that_share_a_node_are_one_row(cluster: Cluster) -> None:
    """The node's counters do not separate them."""
    cluster.mounts("c3", (HOME, 100, 0, 0))
    assert [one.jobs for one in cluster.asked("8", "9").loads] == [("8", "9")]


def test_a_node_that_does_not_answer_is_named(cluster: Cluster) -> None:
    """The load of its job is not known whole."""
    cluster.mounts("c1", (HOME, 100, 0, 0))
    cluster.site.hosts.silent.add("c2")
    found = cluster.asked("7")
    assert list(found.unread) == ["c2"]
    assert "No route to host" in found.unread["c2"]
    assert [one.nodes for one in found.loads] == [1]


def test_a_job_that_does_not_run_is_refused(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="it does not run: Slurm reports COMPLETED"):
        cluster.asked("7", "11")


def test_counters_that_began_again_have_no_rate() -> None:
    """A mount of that moment, and one that was made again, are measured by the next look."""
    before = {"a": StorageCounters(10, 10, 10), "b": StorageCounters(10, 10, 10)}
    after = {"a": StorageCounters(5, 20, 20), "b": StorageCounters(10, 30, 10), "c": StorageCounters(1, 1, 1)}
    found = rates(StorageReadings(seconds=2.0, before=before, after=after))
    assert found == {"b": StorageRates(metadata=0.0, read_bytes=0.0, written_bytes=10.0)}
