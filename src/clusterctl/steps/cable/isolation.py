"""Isolation of links: looks first, writes its intent, disables or enables the port, and reads it back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import ClaimLostError, EdgeError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.port_acts import DisabledPort, disabled_ports, intended, observed
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import Claim, Deadline, FabricReader, Journal, PortAdmin

_REREAD_S = 2.0
_MOVED = "read and judge the fabric again: nothing was done to this port"


@dataclass(frozen=True, slots=True)
class Isolator:
    """Disables and enables ports. `claim` is that of the fabric: every event is fenced by it."""

    reader: FabricReader
    admin: PortAdmin
    journal: Journal
    claim: Claim

    def fabric(self, deadline: Deadline) -> tuple[Fabric, tuple[Digest, ...]]:
        """Return the fabric as it is now, with the digests of the evidence."""
        seen = self.reader.ibnetdiscover(deadline)
        return parse_ibnetdiscover(seen.value, file="ibnetdiscover"), self._kept(seen.evidence)

    def disable(self, out: DisabledPort, deadline: Deadline) -> bool:
        """Disable the port; False where it was disabled. Raise `EdgeError` where another cable is there now."""
        fabric, proof = self.fabric(deadline)
        lid, identity = self._lid(fabric, out.port, deadline)
        if self._is_disabled(Act.PORT_DISABLE, lid, out, deadline):
            return False
        peer = peer_of(fabric, out.port)
        if peer != out.peer:
            found = f"{peer.guid} port {peer.number}" if peer else "nothing"
            message = f"it leads to {found}, not to {out.peer.guid} port {out.peer.number} as it did when it was judged"
            raise EdgeError(message, where=out.label, remedy=_MOVED)
        self._set(Act.PORT_DISABLE, lid, out, (*proof, *identity), deadline)
        return True

    def enable(self, out: DisabledPort, deadline: Deadline) -> None:
        """Enable the port, and wait until its link is up. A port with another peer than before is disabled again."""
        fabric, proof = self.fabric(deadline)
        lid, identity = self._lid(fabric, out.port, deadline)
        if self.admin.state(lid, out.port.number, deadline).value.disabled:
            self._write(intended(Act.PORT_ENABLE, out, (*proof, *identity)))
            deadline.check("enabling a port")
            self.admin.set_disabled(lid, out.port.number, False, deadline)
        else:
            self._write(intended(Act.PORT_ENABLE, out, (*proof, *identity)))
        while (peer := peer_of(self.fabric(deadline)[0], out.port)) is None:
            deadline.sleep(_REREAD_S, f"waiting for the link of {out.label}")
        if peer != out.peer:
            self.back_out(out, deadline)
            message = f"it now leads to {peer.guid} port {peer.number}: it was disabled again"
            raise EdgeError(message, where=out.label, remedy="put the cable where the plan has it, then enable again")

    def wait(self, seconds: float, deadline: Deadline) -> None:
        """Wait, and renew the claim meanwhile."""
        end = deadline.within(seconds)
        while end.remaining > 0:
            lost = self.journal.renew([self.claim])
            if lost:
                raise ClaimLostError(lost[self.claim.node], where="fabric", remedy="see what the other run does")
            deadline.sleep(min(self.journal.lease_s / 4, end.remaining), "watching the counters of enabled links")

    def proven(self, out: DisabledPort, proof: str, evidence: tuple[Evidence, ...]) -> None:
        """Record that the link works, with the proof."""
        self._write(observed(Act.PORT_ENABLE, out, proof, self._kept(evidence)))

    def back_out(self, out: DisabledPort, deadline: Deadline) -> None:
        """Disable a port again that was enabled and does not work."""
        lid, identity = self._lid(self.fabric(deadline)[0], out.port, deadline)
        if not self._is_disabled(Act.PORT_DISABLE, lid, out, deadline):
            self._set(Act.PORT_DISABLE, lid, out, identity, deadline)

    def _is_disabled(self, act: Act, lid: int, out: DisabledPort, deadline: Deadline) -> bool:
        """Return whether the port is disabled already, as after a killed run, and record it."""
        state = self.admin.state(lid, out.port.number, deadline)
        if state.value.disabled:
            self._write(observed(act, out, state.value.physical, self._kept(state.evidence)))
        return state.value.disabled

    def _set(self, act: Act, lid: int, out: DisabledPort, proof: tuple[Digest, ...], deadline: Deadline) -> None:
        self._write(intended(act, replace(out, sure=False), proof))
        deadline.check(f"{act.value} of {out.label}")
        after = self.admin.set_disabled(lid, out.port.number, act is Act.PORT_DISABLE, deadline)
        self._write(observed(act, out, after.value.physical, self._kept(after.evidence)))

    def _lid(self, fabric: Fabric, port: PortId, deadline: Deadline) -> tuple[int, tuple[Digest, ...]]:
        """Return the LID at which the port's switch answers now, proven by its GUID."""
        device = fabric.devices.get(port.guid)
        if device is None or not device.lids:
            raise EdgeError("the switch is not in the fabric", where=str(port.guid), remedy="bring it back first")
        lid = device.lids[0]
        answered = self.admin.device(lid, deadline)
        if answered.value != port.guid:
            raise EdgeError(f"LID {lid} answers as {answered.value}", where=str(port.guid), remedy=_MOVED)
        return lid, self._kept(answered.evidence)

    def _kept(self, evidence: tuple[Evidence, ...]) -> tuple[Digest, ...]:
        self.journal.store(evidence)
        return tuple(item.digest for item in evidence)

    def _write(self, event: NewEvent) -> None:
        self.journal.append([event], claim=self.claim)


def ports_out(journal: Journal) -> tuple[DisabledPort, ...]:
    """Return the ports that are disabled, or may be. Only acts are read: a fabric has many other events."""
    events = [event for kind in (Kind.ACT_INTENDED, Kind.ACT_OBSERVED) for event in journal.latest(Stream.FABRIC, kind)]
    return disabled_ports(sorted(events, key=lambda event: event.seq))


def peer_of(fabric: Fabric, port: PortId) -> PortId | None:
    """Return the port's peer; None where the link is not up."""
    for link in fabric.links:
        if port in (link.a, link.b):
            return link.b if link.a == port else link.a
    return None
