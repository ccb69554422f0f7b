"""Slurm, through its own `sinfo` and `scontrol`, here or on another host by `ssh`.

A node is drained only while it is idle, looked at again, and given back at once where a job had begun on it meanwhile.
`UNDRAIN` takes back the drain alone: a node that went down in between stays down (scontrol(1),
https://slurm.schedmd.com/scontrol.html).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from clusterctl.edges.processes import ProcessResult, Surroundings, run
from clusterctl.fleet.errors import EdgeError, ParseError, UsageError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.formats.slurm import COLUMNS, SlurmNode, parse_sinfo
from clusterctl.ports import Clock, Deadline
from clusterctl.ports.scheduler import PREFIX, Draining, Occupancy, Use, is_returnable

SECONDS = 120.0
"""sinfo(1) itself tries for a minute to reach a controller that does not answer."""
ENVIRONMENT = ("SLURM_CONF", "SLURM_CONF_SERVER")
REMEDY = "run sinfo by hand as the user of clusterctl, and correct what it reports"
LACKING = "apt-get install slurm-client, or name the host that has it in nightly.scheduler.ssh"
_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=15")
_IDLE = frozenset({"idle"})
_OUT = frozenset({"drained", "down", "drained*", "maint", "reserved", "powered_down", "powering_down", "reboot"})
_LEAVING = frozenset({"draining", "drng"})
_BUSY = frozenset({"allocated", "mixed", "completing", "planned", "comp"}) | _LEAVING


@dataclass(frozen=True, slots=True)
class SlurmScheduler:
    """Meets `ports.scheduler.Scheduler`. `ssh`: the host that has Slurm's tools; empty for this one. Its key must be
    known to ssh already.
    """

    clock: Clock
    origin: Origin
    ssh: str = ""

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        nodes, evidence = self._nodes((), deadline)
        return Observed({name: occupancy(node) for name, node in nodes.items()}, (evidence,))

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        """Drain the nodes. Raise `UsageError` for a reason that clusterctl could not recognise as its own later."""
        _require_ours(reason)
        before, _ = self._nodes((), deadline)
        refused = {name: why for name in nodes if (why := _not_idle(before.get(name)))}
        wanted = [name for name in nodes if name not in refused]
        if not wanted:
            return refused
        after = self._drained(wanted, reason, deadline)
        lost = {name: why for name in wanted if (why := _not_ours(after.get(name), reason))}
        undone = [name for name in sorted(lost) if name in after and after[name].reason == reason]
        if undone:
            self._update(undone, deadline, "State=UNDRAIN")
        return {**refused, **lost}

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        """Drain the nodes, also those with jobs. A drain of another reason is left as it is.

        Raise `UsageError` for a reason that clusterctl could not recognise as its own later.
        """
        _require_ours(reason)
        now, _ = self._nodes((), deadline)
        refused = {name: why for name in nodes if (why := _not_drainable(now.get(name), reason))}
        ours = [name for name in nodes if name not in refused]
        if wanted := [name for name in ours if not _drained_for(now[name], reason)]:
            now = self._drained(wanted, reason, deadline)
        lost = {name: _not_ours(now.get(name), reason) for name in ours if not _drained_for(now.get(name), reason)}
        return _draining([name for name in ours if name not in lost], now, {**refused, **lost})

    def _drained(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, SlurmNode]:
        """Drain the nodes; return all nodes as they are then."""
        deadline.check("draining nodes")
        self._update(nodes, deadline, "State=DRAIN", f"Reason={reason}")
        return self._nodes((), deadline)[0]

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        """Change the reason of each node that clusterctl drained; another drain keeps its reason."""
        now, _ = self._nodes((), deadline)
        if not _not_to_be_given(now.get(node)):
            deadline.check("naming the reason of a drain")
            self._update([node], deadline, "State=DRAIN", f"Reason={reason}")

    def give_back(self, nodes: Sequence[str], deadline: Deadline, fault: str = "") -> Mapping[str, str]:
        if not nodes:
            return {}
        now, _ = self._nodes((), deadline)
        kept = {name: why for name in nodes if (why := _not_to_be_given(now.get(name), fault))}
        free = [name for name in nodes if name not in kept]
        if free:
            deadline.check("giving nodes back")
            self._update(free, deadline, "State=UNDRAIN")
        return kept

    def features(self, deadline: Deadline) -> Mapping[str, tuple[str, ...]]:
        """Return the available features of each node, by its name."""
        return {name: node.features for name, node in self._nodes((), deadline)[0].items()}

    def set_features(self, node: str, features: Collection[str], deadline: Deadline) -> None:
        """Make these the node's available and active features: all of them, in place of those that it has."""
        deadline.check("setting features")
        names = ",".join(features)
        self._update([node], deadline, f"AvailableFeatures={names}", f"ActiveFeatures={names}")

    def _nodes(self, more: Sequence[str], deadline: Deadline) -> tuple[Mapping[str, SlurmNode], Evidence]:
        argv = ("sinfo", *COLUMNS, *more)
        at, ran = self.clock.now(), self._run(argv, deadline)
        evidence = Evidence(shlex.join(argv), self.ssh or "controller", at, self.origin, ran.stdout.encode())
        try:
            nodes = parse_sinfo(ran.stdout)
        except ParseError as error:
            raise EdgeError(f"its answer was not understood: {error}", where="sinfo", remedy=REMEDY) from error
        if not nodes:
            raise EdgeError("it names no node", where="sinfo", remedy=REMEDY)
        return nodes, evidence

    def _update(self, nodes: Sequence[str], deadline: Deadline, *settings: str) -> None:
        self._run(("scontrol", "update", f"NodeName={','.join(nodes)}", *settings), deadline)

    def _run(self, argv: Sequence[str], deadline: Deadline) -> ProcessResult:
        ran = run(
            on_slurm_host(self.ssh, argv),
            deadline.within(SECONDS),
            Surroundings(missing=LACKING, inherited=ENVIRONMENT),
        )
        if ran.exit_status != 0:
            printed = " ".join((ran.stderr or ran.stdout).split())[-300:]
            where = f"{argv[0]} on {self.ssh}" if self.ssh else argv[0]
            raise EdgeError(f"exit status {ran.exit_status}: {printed or 'no message'}", where=where, remedy=REMEDY)
        return ran


def on_slurm_host(ssh: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs `argv` on the host with Slurm's tools: `ssh`, or this one where it is empty."""
    return (*_SSH, "--", ssh, shlex.join(argv)) if ssh else tuple(argv)


def occupancy(node: SlurmNode) -> Occupancy:
    """Return Slurm's state of the node, in our terms. A node with a sign (silent, powered down, …) is not idle."""
    words = f"{node.state}{node.sign}"
    if node.state in _IDLE:
        return Occupancy(Use.UNKNOWN if node.sign else Use.IDLE, words, node.reason)
    known = Use.BUSY if node.state in _BUSY else Use.OUT if node.state in _OUT else Use.UNKNOWN
    return Occupancy(known, words, node.reason, leaving=node.state in _LEAVING)


def _require_ours(reason: str) -> None:
    if not reason.startswith(PREFIX):
        raise UsageError(f"{reason!r} does not begin with {PREFIX}", where="reason", remedy="name check and event")


def _drained_for(node: SlurmNode | None, reason: str) -> bool:
    """Return whether the node is drained, or drains, for this reason."""
    return node is not None and node.state in _LEAVING | {"drained"} and node.reason == reason


def _draining(held: Iterable[str], nodes: Mapping[str, SlurmNode], refused: Mapping[str, str]) -> Draining:
    """Return what was reached. `held`: the nodes that are drained for us, or drain."""
    seen = {name: occupancy(nodes[name]) for name in held}
    return Draining(
        out=frozenset(name for name, one in seen.items() if one.use is Use.OUT),
        waiting={name: one.state for name, one in seen.items() if one.use is not Use.OUT},
        refused=refused,
    )


def _not_drainable(node: SlurmNode | None, reason: str) -> str:
    """Return why the node cannot be drained for this reason; empty where it can, or is."""
    if node is None:
        return "Slurm does not know it"
    if _drained_for(node, reason):
        return ""
    if node.state in (_IDLE | _BUSY) - _LEAVING and not node.sign:
        return ""
    return f"Slurm reports {node.state}{node.sign}{f': {node.reason}' if node.reason else ''}"


def _not_idle(node: SlurmNode | None) -> str:
    if node is None:
        return "Slurm does not know it"
    seen = occupancy(node)
    return "" if seen.use is Use.IDLE else f"Slurm reports {seen.state}{f': {seen.reason}' if seen.reason else ''}"


def _not_ours(node: SlurmNode | None, reason: str) -> str:
    if node is None:
        return "Slurm does not know it any more"
    if node.state == "drained" and node.reason == reason:
        return ""
    return (
        f"it was idle, and then Slurm reported {node.state}{node.sign}: a job began on it, or another user changed it"
    )


def _not_to_be_given(node: SlurmNode | None, fault: str = "") -> str:
    """Return why a node stays drained, empty where it may be given back. `fault`: a reason that is lifted as well."""
    if node is None:
        return "Slurm does not know it"
    if node.state not in ("drained", "draining"):
        return f"Slurm reports {node.state}{node.sign}: it is not drained"
    if not node.reason.startswith(PREFIX):
        return f"its drain is not ours any more: {node.reason or 'no reason'}"
    liftable = is_returnable(node.reason) or (fault and node.reason == fault)
    return "" if liftable else f"it is drained for a fault, an operator gives it back: {node.reason}"


class Featured(Protocol):
    """What keeps nodes' features."""

    def features(self, deadline: Deadline) -> Mapping[str, tuple[str, ...]]: ...
    def set_features(self, node: str, features: Collection[str], deadline: Deadline) -> None: ...


def publish_feature(
    slurm: Featured, feature: str, nodes: Collection[str], gold: Collection[str], deadline: Deadline
) -> tuple[str, ...]:
    """Give `feature` to the gold ones of `nodes`, take it from the others, leave all other features as they are; the
    gold nodes that the scheduler does not know.
    """
    there = slurm.features(deadline)
    for name in sorted(set(nodes) & there.keys()):
        had = there[name]
        if (feature in had) is not (name in gold):
            kept = [one for one in had if one != feature]
            slurm.set_features(name, [*kept, feature] if name in gold else kept, deadline)
    return tuple(sorted(set(gold) - there.keys()))
