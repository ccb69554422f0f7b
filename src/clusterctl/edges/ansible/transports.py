"""`Playbooks` in the cheapest way that a playbook and a host allow: played by the host itself, or over SSH."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.bundle import Bundle, ensure_bundle
from clusterctl.edges.ansible.errand import pack
from clusterctl.edges.ansible.looped_roles import chosen_roles
from clusterctl.edges.ansible.on_hosts import Declined, HostPlays, Order
from clusterctl.edges.ansible.playbooks import RunnerPlaybooks
from clusterctl.edges.ansible.portable import Portable, examine
from clusterctl.edges.ansible.redaction import redaction
from clusterctl.edges.ansible.transcript import HostResult
from clusterctl.edges.ansible.workspace import Settings
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.ports import LEASE_S, Clock, Deadline, HostAddress, PlayOutcome


class Transport(StrEnum):
    """`AUTO`: by the host where it can, else over SSH. `HOST`: never over SSH; what cannot is a failure."""

    AUTO = "auto"
    SSH = "ssh"
    HOST = "host"


class AnsiblePlaybooks:
    """Meets `Playbooks`. The source of evidence says which way it went.

    Arguments as of `RunnerPlaybooks`; `bundles_dir` keeps the packed Ansible.
    """

    def __init__(
        self,
        *,
        work_dir: Path,
        bundles_dir: Path,
        playbooks_dir: Path,
        roles_dir: Path,
        forks: int,
        origin: Origin,
        clock: Clock,
        transport: Transport = Transport.AUTO,
        task_timeout: int = 1800,
        check: bool = False,
        secrets: Mapping[str, str] | None = None,
        silence_s: float = LEASE_S / 2,
    ) -> None:
        self._over_ssh = RunnerPlaybooks(
            work_dir=work_dir,
            playbooks_dir=playbooks_dir,
            roles_dir=roles_dir,
            forks=forks,
            origin=origin,
            clock=clock,
            task_timeout=task_timeout,
            check=check,
            secrets=secrets,
            silence_s=silence_s,
        )
        self._bundles_dir = bundles_dir
        self._work_dir, self._playbooks_dir, self._roles_dir = work_dir, playbooks_dir, roles_dir
        self._settings = Settings(forks=forks, task_timeout=task_timeout)
        self._origin, self._clock, self._transport = origin, clock, transport
        self._check, self._secrets, self._silence_s = check, dict(secrets or {}), silence_s

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Generator[Observed[PlayOutcome], None, None]:
        """One outcome per host, as `RunnerPlaybooks.run`; also its errors."""
        path = self._playbooks_dir / playbook
        if self._transport is Transport.SSH or not hosts or not path.is_file():
            yield from self._over_ssh.run(playbook, hosts, variables, deadline)
            return
        portable = examine(path, self._roles_dir, chosen_roles(variables))
        bundle = self._bundle(path, portable)
        if isinstance(bundle, str):
            yield from self._by_ssh(playbook, dict.fromkeys(hosts, bundle), variables, deadline)
            return
        declined: dict[HostAddress, str] = {}
        errand = pack(path, portable, self._roles_dir, variables, self._secrets)
        order = Order(playbook, errand, bundle, self._settings, self._silence_s, self._check)
        plays = HostPlays(order, hosts, redaction(variables, self._secrets))
        with closing(plays.run(self._work_dir, deadline)) as results:
            for result in results:
                if isinstance(result, HostResult):
                    yield self._observed(f"ansible-playbook {playbook} on the host itself", result)
                elif self._transport is Transport.AUTO:
                    declined[result.host] = result.reason
                else:
                    yield self._refused(playbook, result)
        yield from self._by_ssh(playbook, declined, variables, deadline)

    def _bundle(self, path: Path, portable: Portable) -> Bundle | str:
        """What hosts need; or why this playbook goes over SSH."""
        if portable.obstacles:
            reason = "; ".join(portable.obstacles)
            if self._transport is Transport.HOST:
                remedy = "set configure.transport: auto, or take that out of the playbook"
                raise UsageError(f"hosts cannot play it themselves: {reason}", where=str(path), remedy=remedy)
            return reason
        try:
            return ensure_bundle(self._bundles_dir)
        except EnvironmentBrokenError as error:
            if self._transport is Transport.HOST:
                raise
            return error.message

    def _by_ssh(
        self, playbook: str, reasons: Mapping[HostAddress, str], variables: Mapping[str, Any], deadline: Deadline
    ) -> Generator[Observed[PlayOutcome], None, None]:
        by_name = {host.name: reason for host, reason in reasons.items()}
        with closing(self._over_ssh.run(playbook, list(reasons), variables, deadline)) as results:
            for observed in results:
                source = f"ansible-playbook {playbook} over SSH ({by_name[observed.value.host]})"
                yield replace(observed, evidence=tuple(replace(one, source=source) for one in observed.evidence))

    def _observed(self, source: str, result: HostResult) -> Observed[PlayOutcome]:
        evidence = Evidence(source, result.outcome.host, self._clock.now(), self._origin, result.tasks)
        return Observed(result.outcome, (evidence,))

    def _refused(self, playbook: str, declined: Declined) -> Observed[PlayOutcome]:
        message = f"the host cannot play by itself, and configure.transport is host: {declined.reason}"
        result = HostResult(PlayOutcome(declined.host.name, ok=False, changed=0, message=message), b"")
        return self._observed(f"ansible-playbook {playbook} on the host itself", result)
