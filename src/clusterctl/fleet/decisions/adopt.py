"""When a machine that is installed already may be taken in."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.permissions import require_living, require_no_hold, require_no_open_act
from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import UntrustedError, UsageError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import RevalidationOrigin, Serial, Stage, Step
from clusterctl.fleet.payloads.node import HostKeyTrust, NodeAdopted
from clusterctl.fleet.state import Revalidation

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeState

ADOPTABLE = (Stage.SEEN, Stage.DISCOVERED)
"""The stages before the OS counts as installed."""


def adoptable(node: NodeState, now: datetime, *, new_key: bool = False) -> None:
    """Raise `UsageError` where the node may not be taken in as it is installed.

    `new_key`: an operator confirms that its host was installed again by hand; then it may be adopted already.
    """
    require_living(node)
    require_no_hold(node, now)
    if node.stage is Stage.QUARANTINED:
        remedy = f"repair it and clusterctl release {node.name} --reason '…', then adopt it"
        raise UsageError(f"it is quarantined: {node.cause}", where=node.name, remedy=remedy)
    if node.stage not in ADOPTABLE and not (node.adopted and new_key):
        remedy = "nothing to do; where an adopted host was installed again by hand, add --new-host-key"
        raise UsageError(f"it is {node.stage.value} already", where=node.name, remedy=remedy)
    if node.reinstall or node.intent(Act.INSTALL_START) is not None:
        remedy = f"clusterctl install --limit {node.name} goes on with that"
        raise UsageError("clusterctl has begun to install its OS", where=node.name, remedy=remedy)
    require_no_open_act(node)


def require_same_key(node: NodeState, offered: str, *, replace: bool) -> None:
    """Raise `UntrustedError` where the host offers another key than the one that was confirmed before.

    `replace`: an operator confirms that the host has a new key.
    """
    if node.host_key and node.host_key.split()[:2] != offered.split()[:2] and not replace:
        raise UntrustedError(
            "the host offers another SSH key than the one that was confirmed before",
            where=node.name,
            remedy="find out which machine has this address; add --new-host-key where the host was installed again",
        )


def adopted(
    node: NodeState, address: str, key: tuple[str, HostKeyTrust], serial: str, evidence: tuple[Digest, ...]
) -> tuple[NewEvent, ...]:
    """Return the events that take the node in: back to before install where it is beyond, then adopted.

    `key`: its host key, and what vouches for it.
    """
    payload = NodeAdopted(address=address, public=key[0], trust=key[1], serial=Serial(serial))
    event = node_event(node.id, payload, evidence)
    if node.stage in ADOPTABLE:
        return (event,)
    why = Revalidation(RevalidationOrigin.OPERATOR, "its host was installed again by hand")
    return (order_event(node, Step.INSTALL, why), event)
