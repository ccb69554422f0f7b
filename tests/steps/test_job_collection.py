"""Evidence of a job as its nodes give it: the program runs on this machine."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.jobs.collection import CollectionRequest, Wanted
from clusterctl.operations.adapters import Access
from clusterctl.operations.compose import StepFactory
from clusterctl.ports import Deadline
from tests.edges.slurm.job_site import LOST_GPU, job_site


def test_a_node_gives_its_kernels_log_and_when_it_booted(tmp_path: Path) -> None:
    """When it booted shows whether it was lost, or its scheduler's daemon alone; a silent host gives nothing."""
    now = datetime.now(UTC)
    with job_site(tmp_path) as site:
        site.hosts.kernel_log("c1").write_text(f"{now.isoformat()} c1 kernel: {LOST_GPU}\n")
        site.hosts.silent.add("c2")
        job = ScheduledJob(job="7", state="NODE_FAIL", started=now, batch_host="c1")
        request = CollectionRequest(
            job=job, nodes=("c1", "c2"), since=now - timedelta(minutes=5), until=now, patterns=(), wanted=Wanted(bmc=False)
        )  # fmt: skip
        with closing(site.context.adapters(Access.READ)) as adapters:
            collector = StepFactory(site.context, adapters, threading.Event(), read_only=True).job_collector()
            found = {one.node: one for one in collector.collect(request, Deadline.after(120))}
    assert LOST_GPU in found["c1"].found.files["kernel.log"].decode()
    assert found["c1"].found.booted is not None
    assert found["c1"].found.booted < now
    assert (found["c2"].answered, found["c2"].found.booted) == (False, None)
