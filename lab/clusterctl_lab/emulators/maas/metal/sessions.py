"""One-time tokens that let a booted machine send and request messages for one operation of MAAS."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from clusterctl_lab.emulators.maas.model import Node
from clusterctl_lab.emulators.maas.status import Status

TOKEN_BYTES = 16


@dataclass(slots=True)
class Session:
    """One boot of a machine for one operation.

    attempt   the id of the operation's script result: a new one for each attempt
    overlay   the host's own files, after the order to write was given
    host_key  the public key that its OS shall have; empty: any
    """

    token: str
    node: Node
    purpose: Status
    attempt: int | None
    overlay: bytes = field(default=b"", repr=False)
    host_key: str = ""

    @property
    def alive(self) -> bool:
        """While the machine is in the operation that it was booted for."""
        return self.node.status is self.purpose and attempt(self.node) == self.attempt


def attempt(node: Node) -> int | None:
    """Of what the node is in the middle of."""
    ids = {
        Status.COMMISSIONING: node.commissioning_id,
        Status.TESTING: node.testing_id,
        Status.DEPLOYING: node.installation_id,
    }
    return ids.get(node.status)


class Sessions:
    """At most one a machine: a new boot ends the one before."""

    def __init__(self) -> None:
        self._of: dict[str, Session] = {}

    def begin(self, node: Node) -> Session:
        session = Session(secrets.token_hex(TOKEN_BYTES), node, node.status, attempt(node))
        self._of[node.system_id] = session
        return session

    def find(self, token: str) -> Session | None:
        """Return None where the token is unknown, or has expired."""
        for session in self._of.values():
            if secrets.compare_digest(session.token.encode(), token.encode()):
                return session if session.alive else None
        return None
