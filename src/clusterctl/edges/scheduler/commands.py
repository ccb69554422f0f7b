"""Any other scheduler, through commands of the site.

idle       prints the names of idle nodes, one a line, and ends with 0; anything else is an error, never “none is idle”
take       gets node and reason as last arguments: 0, the node gets no work from now on; 1, it has work (nothing was
           changed); anything else is an error
give_back  gets node and reason as last arguments: 0, the node gets work again; 1, another owner keeps it out
held       prints `NODE REASON` a line, the nodes that `take` keeps out, and ends with 0
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.edges.processes import ProcessResult, Surroundings, run
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.ports import Clock, Deadline
from clusterctl.ports.scheduler import PREFIX, Draining, Occupancy, Use

SECONDS = 120.0
_LACKING = "install it, or correct nightly.scheduler in site.yml"


@dataclass(frozen=True, slots=True)
class CommandScheduler:
    """Meets `ports.scheduler.Scheduler`; the four are argument lists."""

    clock: Clock
    origin: Origin
    idle: Sequence[str]
    take_one: Sequence[str]
    give_one_back: Sequence[str]
    held: Sequence[str]

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        """Return the nodes that a command names: nothing is known of others."""
        at = self.clock.now()
        idle, held = self._lines(self.idle, deadline), self._lines(self.held, deadline)
        found: dict[str, Occupancy] = {}
        for line in idle:
            if len(line.split()) != 1:
                raise EdgeError(f"not a node's name: {line[:100]!r}", where=shlex.join(self.idle), remedy=_form("idle"))
            found[line] = Occupancy(Use.IDLE, "idle")
        for line in held:
            name, _, reason = line.partition(" ")
            found[name] = Occupancy(Use.OUT, "held", reason.strip())
        printed = "\n".join([*(f"idle {line}" for line in idle), *(f"held {line}" for line in held)])
        evidence = Evidence(shlex.join(self.idle), "controller", at, self.origin, printed.encode())
        return Observed(found, (evidence,))

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        return self._each(nodes, lambda name: (*self.take_one, name, reason), "it has work", deadline)

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        """Take the nodes that have no work; the site's commands have no other drain, so a busy node may get new work.

        A node that is kept out for another reason is refused.
        """
        seen = self.look(deadline).value
        held = {name: one.reason for name, one in seen.items() if one.use is Use.OUT}
        refused = {name: f"it is kept out: {held[name]}" for name in nodes if held.get(name, reason) != reason}
        wanted = [name for name in nodes if name not in held]
        busy = self.take(wanted, reason, deadline)
        mine = [name for name in nodes if name not in refused and name not in busy]
        return Draining(out=frozenset(mine), waiting=busy, refused=refused)

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        """Do nothing: the site's commands know one reason for each node, that of `take`."""

    def give_back(self, nodes: Sequence[str], deadline: Deadline, fault: str = "") -> Mapping[str, str]:
        if not nodes:
            return {}
        now = self.look(deadline).value
        ours = [
            name for name in nodes if name in now and (now[name].returnable or (fault and now[name].reason == fault))
        ]
        kept = self._each(
            ours, lambda name: (*self.give_one_back, name, now[name].reason), "another owner keeps it out", deadline
        )
        return {**{name: f"it is not kept out by {PREFIX}…" for name in nodes if name not in ours}, **kept}

    def _each(
        self, nodes: Sequence[str], argv: Callable[[str], Sequence[str]], no: str, deadline: Deadline
    ) -> Mapping[str, str]:
        refused = {}
        for name in nodes:
            deadline.check("speaking with the scheduler")
            ran = self._run(argv(name), deadline)
            if ran.exit_status not in (0, 1):
                raise _failed(argv(name), ran)
            if ran.exit_status == 1:
                refused[name] = " ".join(ran.stderr.split())[-200:] or no
        return refused

    def _lines(self, argv: Sequence[str], deadline: Deadline) -> list[str]:
        ran = self._run(argv, deadline)
        if ran.exit_status != 0:
            raise _failed(argv, ran)
        return [line.strip() for line in ran.stdout.splitlines() if line.strip()]

    @staticmethod
    def _run(argv: Sequence[str], deadline: Deadline) -> ProcessResult:
        return run(argv, deadline.within(SECONDS), Surroundings(missing=_LACKING))


def _form(command: str) -> str:
    return f"let {command} print one name a line (docs/how-to/nightly.md)"


def _failed(argv: Sequence[str], ran: ProcessResult) -> EdgeError:
    printed = " ".join((ran.stderr or ran.stdout).split())[-300:]
    remedy = "run it by hand as the user of clusterctl, and correct it"
    return EdgeError(f"exit status {ran.exit_status}: {printed or 'no message'}", where=shlex.join(argv), remedy=remedy)


@dataclass(frozen=True, slots=True)
class ListedScheduler:
    """Meets `ports.scheduler.Scheduler`: `names` are idle at all times, and nothing needs to be done to take them."""

    names: frozenset[str]

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        deadline.check("looking at the site's list")
        return Observed({name: Occupancy(Use.IDLE, "listed as idle") for name in sorted(self.names)})

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        del reason
        deadline.check("looking at the site's list")
        return {name: "the site does not list it as idle" for name in nodes if name not in self.names}

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        refused = self.take(nodes, reason, deadline)
        return Draining(out=frozenset(nodes) - refused.keys(), refused=refused)

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        """Do nothing: a list keeps no reasons."""

    def give_back(self, nodes: Sequence[str], deadline: Deadline, fault: str = "") -> Mapping[str, str]:
        del nodes, deadline, fault  # nothing was drained
        return {}
