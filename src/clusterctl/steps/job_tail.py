"""Reads what a running job adds to its log, on one of its nodes, with the rights of the job's user."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.fleet.state import NodeState
from clusterctl.formats.job_tail import Tail, parse_tail
from clusterctl.ports import Deadline, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl_burnin.package_data import text_of

SECONDS = 30.0
MOST_BYTES = 4 << 20
MOST_NODES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRequest:
    """From where on the log is read, and what else: a heartbeat file, TensorBoard's events.

    events         folder or file of event files; empty: none
    events_file, events_offset   the file that was read last, and where its next record begins
    """

    offset: int = 0
    heartbeat: str = ""
    events: str = ""
    events_file: str = ""
    events_offset: int = 0


@dataclass(frozen=True, slots=True)
class TailReader:
    """Reads on the batch host; where that does not answer, on two others: the log may be on a shared file system."""

    shell: Shell
    access: SshAccess
    states: Mapping[str, NodeState]

    def read(self, job: ScheduledJob, nodes: Sequence[str], request: TailRequest, deadline: Deadline) -> Tail:
        """Return what was added since the last look; an error of the hosts is that of the answer."""
        offset = request.offset
        if job.uid is None or job.gid is None or not job.stdout.startswith("/"):
            return Tail(offset=offset, error="the job's user or the path of its output is unknown")
        wish = {
            "uid": job.uid,
            "gid": job.gid,
            "path": job.stdout,
            "offset": offset,
            "most": MOST_BYTES,
            "heartbeat": request.heartbeat.replace("%j", job.job),
            "events": {
                "path": request.events.replace("%j", job.job),
                "file": request.events_file,
                "offset": request.events_offset,
                "since": job.started.timestamp() if job.started is not None else 0.0,
            },
        }
        stdin = f"{text_of('node/job_tail.py')}\nmain(json.loads({json.dumps(wish)!r}))\n".encode()
        found = Tail(offset=offset, error="none of its nodes is known")
        for name in list(dict.fromkeys([job.batch_host, *nodes]))[:MOST_NODES]:
            found = self._on(name, stdin, offset, deadline.within(SECONDS))
            if not found.error:
                break
        return found

    def _on(self, name: str, stdin: bytes, offset: int, deadline: Deadline) -> Tail:
        state = self.states.get(name)
        host = self.access.address(state) if state is not None else None
        if host is None:
            return Tail(offset=offset, error=f"{name}: its address or host key is unknown")
        argv = ("python3", "-") if host.user == "root" else ("sudo", "-n", "python3", "-")
        try:
            ran = self.shell.run(host, argv, stdin, deadline).value
            if ran.exit_status != 0:
                return Tail(
                    offset=offset, error=f"{name}: {' '.join(ran.stderr.split())[-200:] or 'no answer in time'}"
                )
            return parse_tail(ran.stdout, where=name)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            return Tail(offset=offset, error=f"{name}: {peer_error(error, name).message}")
