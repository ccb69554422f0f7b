"""Reads the storage clients of nodes at once: each node's counters twice, or why it has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.state import NodeState
from clusterctl.formats.host.storage_clients import StorageReadings, parse_readings
from clusterctl.ports import Deadline, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl_burnin.package_data import text_of

START_S = 60.0
"""Seconds for the login and the two readings, apart from the time between them."""


@dataclass(frozen=True, slots=True)
class NodeStorage:
    """What one node gave; `error`: why it gave nothing."""

    node: str
    readings: StorageReadings | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class StorageReader:
    """Reads `workers` nodes at a time."""

    shell: Shell
    access: SshAccess
    states: Mapping[str, NodeState]
    workers: int

    def read(self, nodes: Sequence[str], seconds: float, deadline: Deadline) -> Iterator[NodeStorage]:
        """Yield each node as it comes. `seconds`: between its two readings."""
        yield from each([partial(self._node, name, seconds, deadline) for name in nodes], self.workers)

    def _node(self, name: str, seconds: float, deadline: Deadline) -> NodeStorage:
        try:
            return NodeStorage(name, self._readings(name, seconds, deadline.within(START_S + seconds)))
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            return NodeStorage(name, error=peer_error(error, name).message)

    def _readings(self, name: str, seconds: float, deadline: Deadline) -> StorageReadings:
        state = self.states.get(name)
        host = self.access.address(state) if state is not None else None
        if host is None:
            raise UsageError("the site has no node of this name with an address and a host key", where=name)
        stdin = f"{text_of('node/storage_clients.py')}\nmain({{'seconds': {seconds:g}}})\n".encode()
        argv = ("python3", "-") if host.user == "root" else ("sudo", "-n", "python3", "-")
        ran = self.shell.run(host, argv, stdin, deadline).value
        if ran.exit_status != 0:
            raise EdgeError(" ".join(ran.stderr.split())[-200:] or "no answer in time", where=name)
        return parse_readings(ran.stdout, where=name)
