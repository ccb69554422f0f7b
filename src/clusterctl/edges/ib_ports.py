"""Looks at and sets ports of switches with `ibportstate` and `smpquery`, on the controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.edges.fabric import output_of, run_tool
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, ParseError
from clusterctl.fleet.fabric import PortState
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Guid
from clusterctl.formats.infiniband.port_queries import parse_ibportstate, parse_nodeinfo_guid
from clusterctl.ports import Clock, Deadline

_NO_PEER = 255
"""ibportstate's exit status where it has read the port, but the port's peer does not answer, as behind a cut link."""
_REMEDY = "run the command by hand on the controller, and mend what it complains of"


@dataclass(frozen=True, slots=True)
class IbPorts:
    """Meets `ports.PortAdmin`."""

    clock: Clock
    origin: Origin
    ibportstate: Sequence[str] = ("ibportstate",)
    smpquery: Sequence[str] = ("smpquery",)
    where: str = "controller"

    def device(self, lid: int, deadline: Deadline) -> Observed[Guid]:
        argv = (*self.smpquery, "nodeinfo", str(lid))
        text = output_of(argv, deadline)
        return Observed(parse_nodeinfo_guid(text, file=" ".join(argv)), (self._evidence(argv, text),))

    def state(self, lid: int, port: int, deadline: Deadline) -> Observed[PortState]:
        argv = (*self.ibportstate, "-L", str(lid), str(port), "query")
        ran = run_tool(argv, deadline)
        if ran.exit_status not in (0, _NO_PEER):
            message = f"exit status {ran.exit_status}: {ran.stderr.strip()[:300] or 'no message'}"
            raise EdgeError(message, where=" ".join(argv), remedy=_REMEDY)
        return Observed(parse_ibportstate(ran.stdout, file=" ".join(argv)), (self._evidence(argv, ran.stdout),))

    def set_disabled(self, lid: int, port: int, disabled: bool, deadline: Deadline) -> Observed[PortState]:
        """What the tool says of its success is not believed: the port is read again."""
        argv = (*self.ibportstate, "-L", str(lid), str(port), "disable" if disabled else "enable")
        ran = run_tool(argv, deadline)
        try:
            after = self.state(lid, port, deadline)
        except (EdgeError, ParseError) as error:
            remedy = "look at the port with ibportstate query, then run this again: it looks before it acts"
            message = f"it was set, but cannot be read: {error}"
            raise OutcomeUnknownError(message, where=" ".join(argv), remedy=remedy) from error
        if after.value.disabled is not disabled:
            message = f"the port is {after.value.physical} still: {ran.stderr.strip()[:200] or 'no message'}"
            raise EdgeError(message, where=" ".join(argv), remedy=_REMEDY)
        return Observed(after.value, (self._evidence(argv, ran.stdout), *after.evidence))

    def _evidence(self, argv: Sequence[str], text: str) -> Evidence:
        return Evidence(" ".join(argv), self.where, self.clock.now(), self.origin, text.encode())
