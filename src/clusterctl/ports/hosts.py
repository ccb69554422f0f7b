"""Hosts that run: commands over SSH, and playbooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clusterctl.fleet.finding import Observed
from clusterctl.ports.deadline import Deadline


@dataclass(frozen=True, slots=True)
class HostAddress:
    """A host that SSH can reach, and the only key it may present (`ssh-ed25519 AAAA…`)."""

    name: str
    address: str
    user: str
    host_key: str
    key_file: str
    port: int = 22


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command on a host did. `exit_status` is None where it was killed at its time-out."""

    exit_status: int | None
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """The SSH host key that a host offers, not yet trusted: `public` as `known_hosts` has it.

    certified  a certificate of the site's authority names this host and this key
    refused    why its certificate does not count; empty where it does, or where the site has no authority
    """

    public: str
    certified: bool = False
    refused: str = ""


class HostKeyReader(Protocol):
    """Reads the SSH host key that a host offers, without logging in."""

    def read(self, name: str, address: str, deadline: Deadline) -> OfferedKey: ...


class Shell(Protocol):
    """Runs commands on one host over SSH; `stdin` is sent, then closed."""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]: ...


@dataclass(frozen=True, slots=True)
class PlayOutcome:
    """What a playbook did on one host. `failed_task` and `message` are empty when it went well.

    changes     the tasks that changed something, in their order; in check mode those that would
    reboot_for  the roles that take effect only after a reboot; the playbook itself does not reboot
    boot_id     the host's kernel boot_id (random(4)), where the playbook read it; else empty
    """

    host: str
    ok: bool
    changed: int
    failed_task: str = ""
    message: str = ""
    unreachable: bool = False
    changes: tuple[str, ...] = ()
    reboot_for: tuple[str, ...] = ()
    boot_id: str = ""


class Playbooks(Protocol):
    """Runs a playbook on many hosts and yields each host's outcome once the play is over for it."""

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]: ...
