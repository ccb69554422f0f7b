"""Reboots through Slurm: `scontrol reboot ASAP nextstate=DOWN`, and the return to work afterwards.

`nextstate=RESUME` would also lift a drain that another user set while the node rebooted (seen with Slurm 22.05). So the
node is down after its reboot, with the reason that it had or was given since, and is resumed for ours alone.
Source: scontrol(1), https://slurm.schedmd.com/scontrol.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.edges.processes import Surroundings, run
from clusterctl.edges.scheduler.slurm import ENVIRONMENT, LACKING, REMEDY, SECONDS, on_slurm_host
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.slurm import ShownNode, parse_shown_nodes
from clusterctl.formats.slurm_jobs import IN_UTC
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import NodeBoot, Use

_PENDING = frozenset({"REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT", "POWERING_UP", "POWERING_DOWN"})
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_OUT = frozenset({"DRAIN", "DOWN"})


@dataclass(frozen=True, slots=True)
class SlurmReboots:
    """Meets `ports.scheduler.Reboots`. `ssh`: the host with Slurm's tools; empty for this one."""

    ssh: str = ""

    def nodes(self, deadline: Deadline) -> Mapping[str, NodeBoot]:
        text = self._run(("env", *IN_UTC, "scontrol", "--oneliner", "show", "node"), deadline)
        try:
            return {name: node_boot(node) for name, node in parse_shown_nodes(text).items()}
        except ParseError as error:
            message = f"its answer was not understood: {error}"
            raise EdgeError(message, where="scontrol show node", remedy=REMEDY) from error

    def reboot(self, node: str, deadline: Deadline) -> None:
        deadline.check("ordering a reboot")
        self._run(("scontrol", "reboot", "ASAP", "nextstate=DOWN", node), deadline)

    def resume(self, node: str, deadline: Deadline) -> None:
        deadline.check("returning a node to work")
        self._run(("scontrol", "update", f"NodeName={node}", "State=RESUME"), deadline)

    def _run(self, argv: tuple[str, ...], deadline: Deadline) -> str:
        surroundings = Surroundings(missing=LACKING, inherited=ENVIRONMENT)
        ran = run(on_slurm_host(self.ssh, argv), deadline.within(SECONDS), surroundings)
        if ran.exit_status != 0:
            printed = visible_line(" ".join((ran.stderr or ran.stdout).split())[-300:], 300)
            where = f"scontrol on {self.ssh}" if self.ssh else "scontrol"
            raise EdgeError(f"exit status {ran.exit_status}: {printed or 'no message'}", where=where, remedy=REMEDY)
        return ran.stdout


def node_boot(node: ShownNode) -> NodeBoot:
    """Return Slurm's state of a node, in our terms. A drained node with jobs is busy until they have ended."""
    if node.flags & _BUSY:
        use = Use.BUSY
    elif node.flags & _OUT:
        use = Use.OUT
    else:
        use = Use.IDLE if "IDLE" in node.flags else Use.UNKNOWN
    return NodeBoot(
        use=use,
        state="+".join(sorted(node.flags)).lower(),
        reason=node.reason if node.flags & _OUT else "",
        pending=bool(node.flags & _PENDING),
        down="DOWN" in node.flags,
        answers="NOT_RESPONDING" not in node.flags,
        booted=node.booted,
    )
