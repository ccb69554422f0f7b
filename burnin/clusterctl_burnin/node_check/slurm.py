"""How a node drains itself in Slurm, and the brake that keeps one bad check from draining a cluster.

No controller of clusterctl is asked: Slurm itself is the shared memory. A node whose check failed first writes
`clusterctl:<check>:<event>` into its own field `Extra`, and only then reads these fields of all nodes. It drains itself
where at most the allowed number of nodes, itself included, have written the same check within the hour. slurmctld puts
all writes in one order, so that the node that wrote as number k reads at least k: never more than the allowed number
drain themselves, however many ask at the same time, and no lock can be left behind. Where Slurm does not answer in
time, or the field has another owner's text, nothing is drained.
"""

from __future__ import annotations

import enum
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

PREFIX = "clusterctl:"
WINDOW = timedelta(hours=1)
EVENT_FORM = "%Y%m%dT%H%M%SZ"
_MARK = re.compile(r"clusterctl:([a-z0-9_]{1,64}):(\d{8}T\d{6}Z)")
_RUNNING = "RUNNING,SUSPENDED,COMPLETING,CONFIGURING"
_OUT = frozenset({"DRAIN", "DOWN", "FAIL", "FAILING", "DRAINED", "DRAINING"})


class NotAnsweredError(Exception):
    """Slurm did not answer, or not in time."""


class Held(enum.Enum):
    """Why a node was not drained."""

    BRAKE = "the brake holds"
    NOT_ASKED = "Slurm was not asked successfully"
    FOREIGN = "the field Extra of the node has another owner's text"
    UNKNOWN_NODE = "Slurm does not have the node"
    OUT_ALREADY = "the node is out of work already"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInSlurm:
    """A node as Slurm has it. `out`: it is drained or down, by whomever."""

    name: str
    out: bool
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """What became of an order to drain. `held`: None where the node was drained. `failed`, `allowed`: nodes."""

    check: str
    reason: str
    held: Held | None
    failed: int = 0
    allowed: int = 0
    text: str = ""


class Slurm(Protocol):
    """Raises `NotAnsweredError` alone."""

    def nodes(self) -> Mapping[str, NodeInSlurm]: ...
    def update(self, node: str, *settings: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Scontrol:
    """Meets `Slurm` by scontrol(1). `until`: the moment of `clock` after which no command is waited for."""

    program: str
    until: float
    clock: Callable[[], float] = time.monotonic

    def nodes(self) -> Mapping[str, NodeInSlurm]:
        found = [parse_node(line) for line in self._run("--oneliner", "show", "node").splitlines() if line.strip()]
        return {node.name: node for node in found if node is not None}

    def update(self, node: str, *settings: str) -> None:
        self._run("update", f"nodename={node}", *settings)

    def _run(self, *words: str) -> str:
        left = self.until - self.clock()
        if left <= 0:
            raise NotAnsweredError("there was no time left to ask Slurm")
        try:
            done = subprocess.run(
                [self.program, *words], capture_output=True, timeout=left, stdin=subprocess.DEVNULL, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotAnsweredError("Slurm did not answer in time") from None
        except OSError as error:
            raise NotAnsweredError(f"{self.program}: {error.strerror}") from None
        if done.returncode != 0:
            printed = " ".join(done.stderr.decode(errors="replace").split())[-200:]
            raise NotAnsweredError(f"{self.program} ended with {done.returncode}: {printed}")
        return done.stdout.decode(errors="replace")


def parse_node(line: str) -> NodeInSlurm | None:
    """Return the node of a line of `scontrol --oneliner show node`; None where it has no name or no state."""
    name, state = _field(line, "NodeName"), _field(line, "State")
    if not name or not state:
        return None
    for sign in "*~#!%$@^-":
        state = state.replace(sign, "+")
    extra = _field(line, "Extra")
    return NodeInSlurm(name=name, out=not _OUT.isdisjoint(state.split("+")), extra="" if extra == "(null)" else extra)


def _field(line: str, name: str) -> str:
    """Return the first word of a field; empty where the line has none."""
    _, found, rest = f" {line}".partition(f" {name}=")
    return rest.split(" ", 1)[0].strip() if found else ""


def allowed_nodes(nodes: int, percent: float) -> int:
    """Return how many nodes one check may drain within `WINDOW`: at least one."""
    return max(1, int(nodes * percent / 100))


def mark(check: str, now: datetime) -> str:
    """Return `clusterctl:<check>:<event>`: the reason of a drain. The event is its time, in UTC."""
    return f"{PREFIX}{re.sub(r'[^a-z0-9_]', '_', check.lower())[:64]}:{now.astimezone(UTC).strftime(EVENT_FORM)}"


def failed_within(nodes: Mapping[str, NodeInSlurm], check: str, now: datetime) -> frozenset[str]:
    """Return the nodes that wrote this check within `WINDOW` of `now`; also those whose clock is ahead."""
    return frozenset(node.name for node in nodes.values() if _recent(node.extra, check, now))


def _recent(extra: str, check: str, now: datetime) -> bool:
    match = _MARK.fullmatch(extra)
    if match is None or match[1] != check:
        return False
    try:
        at = datetime.strptime(match[2], EVENT_FORM).replace(tzinfo=UTC)
    except ValueError:
        return False
    return at > now - WINDOW


@dataclass(frozen=True, slots=True)
class Drainer:
    """Drains one node, its own."""

    slurm: Slurm
    node: str
    percent: float
    now: Callable[[], datetime]

    def drain(self, check: str) -> Drain:
        """Drain the node for a failed check where the brake lets it. Never raises, and never undrains."""
        now = self.now()
        reason = mark(check, now)
        name = reason.split(":")[1]
        try:
            return self._drain(name, reason, now)
        except NotAnsweredError as error:
            return Drain(check=name, reason=reason, held=Held.NOT_ASKED, text=str(error))

    def _drain(self, check: str, reason: str, now: datetime) -> Drain:
        own = self.slurm.nodes().get(self.node)
        if (held := _held(own)) is not None:
            return Drain(check=check, reason=reason, held=held)
        self.slurm.update(self.node, f"extra={reason}")
        nodes = self.slurm.nodes()
        failed, allowed = failed_within(nodes, check, now), allowed_nodes(len(nodes), self.percent)
        held = _held(nodes.get(self.node))
        if held is None and self.node not in failed:
            held = Held.NOT_ASKED
        if held is None and len(failed) > allowed:
            held = Held.BRAKE
        if held is None:
            self.slurm.update(self.node, "state=drain", f"reason={reason}")
        return Drain(check=check, reason=reason, held=held, failed=len(failed), allowed=allowed)


def _held(node: NodeInSlurm | None) -> Held | None:
    """Return why the node must not be drained; None where it may."""
    if node is None:
        return Held.UNKNOWN_NODE
    if node.out:
        return Held.OUT_ALREADY
    return Held.FOREIGN if node.extra and not node.extra.startswith(PREFIX) else None


def other_jobs(listed: str, own: str) -> Mapping[str, int]:
    """Return the jobs of `squeue --format='%A %U'` without `own`, with their users' numbers. Raises `ValueError`."""
    lines = [line.split() for line in listed.splitlines() if line.strip()]
    if any(len(cells) != 2 for cells in lines):
        raise ValueError("not a line of job and user")
    return {job: int(user) for job, user in lines if job != own}


def squeue(program: str, node: str, seconds: float) -> str:
    """Return the jobs that Slurm has on the node, `JOB USER` a line. Raises `NotAnsweredError`."""
    argv: Sequence[str] = (program, "--noheader", f"--nodelist={node}", f"--states={_RUNNING}", "--format=%A %U")
    try:
        done = subprocess.run(argv, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAnsweredError(f"squeue did not answer: {type(error).__name__}") from None
    if done.returncode != 0:
        raise NotAnsweredError(f"squeue ended with {done.returncode}")
    return done.stdout.decode(errors="replace")
