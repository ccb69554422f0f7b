"""Evidence of one job, read from all its nodes at once: each node's answer, or why it has none, is its own result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.fleet.state import NodeState
from clusterctl.formats.node_evidence import NodeFiles, parse_node_files
from clusterctl.jobs.collection import CollectionRequest, Wanted
from clusterctl.ports import BmcAddress, Bmcs, Deadline, HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl_burnin.bmc_log.judge import weighs
from clusterctl_burnin.package_data import text_of

NODE_S = 120.0
"""Seconds for one node; its own parts have shorter bounds."""
BMC_S = 20.0
KERNEL_BYTES = 8 << 20
FILE_BYTES = 16 << 20
EACH_BYTES = 8 << 20
BMC_FILE = "bmc.json"
_AROUND = timedelta(minutes=10)
"""A BMC's clock may be so wrong."""
_MOST_EVENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedNode:
    """What one node gave. `answered`: the host itself did; `missing`: what was not read, with the reason."""

    node: str
    found: NodeFiles = field(default_factory=NodeFiles)
    answered: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobCollector:
    """Reads `workers` nodes at a time."""

    shell: Shell
    bmcs: Bmcs
    bmc_address: Callable[[str], BmcAddress]
    access: SshAccess
    states: Mapping[str, NodeState]
    workers: int

    def collect(self, request: CollectionRequest, deadline: Deadline) -> Iterator[CollectedNode]:
        """Yield each node's evidence as it comes. Files that all nodes share are read on one of them."""
        batch = request.job.batch_host or next(iter(request.nodes), "")
        calls = [partial(self._node, name, request, name == batch, deadline) for name in request.nodes]
        answered: list[str] = []
        for one in each(calls, self.workers):
            answered += [one.node] if one.answered else []
            yield one
        if request.wanted.files and answered and batch not in answered:
            yield self._shared_files(min(answered), request, deadline)

    def _node(self, name: str, request: CollectionRequest, shared: bool, deadline: Deadline) -> CollectedNode:
        found, missing, answered = NodeFiles(), [], False
        try:
            found = self._host(name, request, shared, deadline.within(NODE_S))
            answered = True
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            missing.append(f"the host was not read: {peer_error(error, name).message}")
        more: Mapping[str, bytes] = {}
        if request.wanted.bmc and name in self.states and self.states[name].bmc:
            try:
                more = {BMC_FILE: self._bmc(name, request, deadline)}
            except Exception as error:  # noqa: BLE001 — likewise
                missing.append(f"the BMC was not read: {peer_error(error, name).message}")
        files = replace(found, files={**found.files, **more}, missing=())
        return CollectedNode(node=name, found=files, answered=answered, missing=(*missing, *found.missing))

    def _shared_files(self, name: str, request: CollectionRequest, deadline: Deadline) -> CollectedNode:
        """Return the files that the batch host would have given, read on another node."""
        only = CollectionRequest(
            job=request.job,
            nodes=(name,),
            since=request.since,
            until=request.until,
            patterns=request.patterns,
            wanted=Wanted(kernel=False, stacks=False, bmc=False),
        )
        return self._node(name, only, True, deadline)

    def _host(self, name: str, request: CollectionRequest, shared: bool, deadline: Deadline) -> NodeFiles:
        host = self._address(name)
        program = text_of("node/job_evidence.py")
        wish = json.dumps(_wish(name, request, shared, deadline))
        stdin = f"{program}\nmain(json.loads({wish!r}))\n".encode()
        argv = ("python3", "-") if host.user == "root" else ("sudo", "-n", "python3", "-")
        ran = self.shell.run(host, argv, stdin, deadline).value
        if ran.exit_status != 0:
            ended = "it did not end in time" if ran.exit_status is None else f"exit status {ran.exit_status}"
            raise EdgeError(f"{ended}: {' '.join(ran.stderr.split())[-200:]}", where=name)
        return parse_node_files(ran.stdout, where=name)

    def _address(self, name: str) -> HostAddress:
        state = self.states.get(name)
        if state is None:
            raise UsageError("the site has no node of this name", where=name)
        host = self.access.address(state)
        if host is None:
            raise UsageError("its address or host key is unknown", where=name)
        return host

    def _bmc(self, name: str, request: CollectionRequest, deadline: Deadline) -> bytes:
        """Return the grave events of the job's time as JSON."""
        limit = deadline.within(BMC_S)
        with self.bmcs.open(self.bmc_address(name), limit) as bmc:
            entries = bmc.event_log(limit).value
        events = []
        for entry in entries:
            at = _moment(entry.at)
            near = at is not None and request.since - _AROUND <= at <= request.until + _AROUND
            if at is not None and near and entry.severity.lower() == "critical" and weighs(entry):
                events.append({"at": at.isoformat(), "text": entry.message[:500]})
        return json.dumps({"version": 1, "events": events[:_MOST_EVENTS]}).encode()


def _wish(name: str, request: CollectionRequest, shared: bool, deadline: Deadline) -> Mapping[str, Any]:
    job, wanted = request.job, request.wanted
    known = job.uid is not None and job.gid is not None
    return {
        "job": job.job,
        "node": name,
        "since": request.since.timestamp(),
        "until": request.until.timestamp(),
        "seconds": max(1.0, deadline.remaining - 10.0),
        "kernel_bytes": KERNEL_BYTES,
        "file_bytes": FILE_BYTES,
        "each_bytes": EACH_BYTES,
        "uid": job.uid,
        "gid": job.gid,
        "shared": shared,
        "paths": sorted({path for path in (job.stdout, job.stderr) if path.startswith("/")} - {"/dev/null"}),
        "patterns": _patterns(job, request.patterns),
        "want": {"kernel": wanted.kernel, "stacks": wanted.stacks, "files": wanted.files and known},
    }


def _patterns(job: ScheduledJob, further: Iterable[str]) -> Sequence[str]:
    """Return where dumps and logs of ranks are looked for: next to the job's output, and where the operator names."""
    folder = job.stdout.rpartition("/")[0] or job.work_dir
    own = [f"{_plain(folder)}/{name}" for name in ("nccl_trace_rank_*", "comm_lib_trace_rank_*", "rank_*.log")]
    return [*(own if folder.startswith("/") else []), *(one.replace("%j", job.job) for one in further)]


def _plain(folder: str) -> str:
    """Return a folder as a pattern that matches itself alone."""
    return "".join(f"[{one}]" if one in "*?[" else one for one in folder)


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
