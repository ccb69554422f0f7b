"""`Playbooks` over the cheapest transport that a playbook and a host allow: on the host itself, or over SSH."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.controller_transport.playbooks import ControllerPlaybooks
from clusterctl.edges.ansible.host_transport.bundle import Bundle, ensure_bundle
from clusterctl.edges.ansible.host_transport.payload import pack
from clusterctl.edges.ansible.host_transport.plays import Declined, HostPlays, PlayRequest
from clusterctl.edges.ansible.host_transport.portable import Portable, chosen_roles, examine
from clusterctl.edges.ansible.transcript import HostResult, redaction
from clusterctl.edges.ansible.workspace import RunSettings
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.ports import Deadline, HostAddress, PlayOutcome


class Transport(StrEnum):
    """`AUTO`: on the host if possible, else over SSH. `HOST`: never over SSH; a host that cannot do it fails."""

    AUTO = "auto"
    SSH = "ssh"
    HOST = "host"


class AnsiblePlaybooks:
    """Meets `Playbooks`. The source of the evidence names the transport. `bundles_dir` keeps the packed Ansible."""

    def __init__(self, settings: RunSettings, *, bundles_dir: Path, transport: Transport = Transport.AUTO) -> None:
        self._settings, self._bundles_dir, self._transport = settings, bundles_dir, transport
        self._controller = ControllerPlaybooks(settings)

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Generator[Observed[PlayOutcome], None, None]:
        """Yield one outcome per host, and raise, as `ControllerPlaybooks.run` does."""
        path = self._settings.playbooks_dir / playbook
        if self._transport is Transport.SSH or not hosts or not path.is_file():
            yield from self._controller.run(playbook, hosts, variables, deadline)
            return
        portable = examine(path, self._settings.roles_dir, chosen_roles(variables))
        bundle = self._bundle(path, portable)
        if isinstance(bundle, str):
            yield from self._by_ssh(playbook, dict.fromkeys(hosts, bundle), variables, deadline)
            return
        declined: dict[HostAddress, str] = {}
        payload = pack(path, portable, self._settings.roles_dir, variables, self._settings.secrets)
        request = PlayRequest(playbook, payload, bundle, self._settings)
        plays = HostPlays(request, hosts, redaction(variables, self._settings.secrets))
        with closing(plays.run(deadline)) as results:
            for result in results:
                if isinstance(result, HostResult):
                    yield self._observed(f"ansible-playbook {playbook} on the host itself", result)
                elif self._transport is Transport.AUTO:
                    declined[result.host] = result.reason
                else:
                    yield self._refused(playbook, result)
        yield from self._by_ssh(playbook, declined, variables, deadline)

    def _bundle(self, path: Path, portable: Portable) -> Bundle | str:
        """Return the bundle for hosts, or the reason why this playbook runs over SSH."""
        if portable.obstacles:
            reason = "; ".join(portable.obstacles)
            if self._transport is Transport.HOST:
                remedy = "set configure.transport: auto, or remove that from the playbook"
                raise UsageError(f"hosts cannot run it themselves: {reason}", where=str(path), remedy=remedy)
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
        with closing(self._controller.run(playbook, list(reasons), variables, deadline)) as results:
            for observed in results:
                source = f"ansible-playbook {playbook} over SSH ({by_name[observed.value.host]})"
                yield replace(observed, evidence=tuple(replace(one, source=source) for one in observed.evidence))

    def _observed(self, source: str, result: HostResult) -> Observed[PlayOutcome]:
        evidence = Evidence(
            source, result.outcome.host, self._settings.clock.now(), self._settings.origin, result.tasks
        )
        return Observed(result.outcome, (evidence,))

    def _refused(self, playbook: str, declined: Declined) -> Observed[PlayOutcome]:
        message = f"the host cannot run the playbook itself, and configure.transport is host: {declined.reason}"
        result = HostResult(PlayOutcome(declined.host.name, ok=False, changed=0, message=message), b"")
        return self._observed(f"ansible-playbook {playbook} on the host itself", result)
