"""The controller transport: ansible-runner over SSH, one supervised job per run, one outcome per host."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.controller_transport.supervised_job import SupervisedJob
from clusterctl.edges.ansible.transcript import KEPT, HostResult, Transcript, redaction
from clusterctl.edges.ansible.workspace import OutOfTimeError, RunSettings, Workspace, ssh_options
from clusterctl.edges.disk import require_room
from clusterctl.edges.processes import run
from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError, SshFailure, UsageError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.formats.host.ssh import parse_ssh_failure
from clusterctl.ports import Deadline, HostAddress, PlayOutcome

COMMAND_NOT_FOUND = 127
RETRY_S = 20


class ControllerPlaybooks:
    """Meets `Playbooks`. Safe to use from several threads: runs share nothing but `work_dir`.

    Each run makes a folder of its own in `work_dir` (in the system's temporary folder where that path is too long for
    ssh's control sockets) and removes it.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Generator[Observed[PlayOutcome], None, None]:
        """Run `playbook` (a file name below `playbooks_dir`) on all `hosts`; yield one outcome per host.

        A host that is not done at the deadline gets an outcome with that reason. Raises `CancelledError` when
        cancelled, `EnvironmentBrokenError` without Ansible or room on the disk (no host is blamed for that),
        `EdgeError` when the play itself cannot run. However it ends, also when the caller stops iterating, no process
        and no file of the run is left.
        """
        path = self._settings.playbooks_dir / playbook
        if not path.is_file():
            raise UsageError("there is no such playbook", where=str(path), remedy="name one of the playbooks there")
        if not hosts:
            return
        workspace = Workspace.create(self._settings.work_dir)
        try:
            known = {**variables, **self._settings.secrets}
            workspace.fill(hosts, known, self._settings.roles_dir, self._settings.limits)
            redact = redaction(variables, self._settings.secrets)
            transcript = Transcript([host.name for host in hosts], redact)
            with closing(self._results(path, workspace, transcript, deadline)) as results:
                for result in results:
                    if not result.outcome.ok:
                        require_room(workspace.root.parent)
                    outcome = with_reason(result.outcome, hosts, workspace, deadline)
                    yield self._observed(playbook, replace(result, outcome=outcome))
        except EdgeError:
            require_room(workspace.root.parent)
            raise
        finally:
            workspace.remove()

    def _results(
        self, path: Path, workspace: Workspace, transcript: Transcript, deadline: Deadline
    ) -> Generator[HostResult, None, None]:
        settings = self._settings
        job = {
            "private_dir": str(workspace.root),
            "project_dir": str(settings.playbooks_dir),
            "playbook": str(path),
            "inventory": str(workspace.inventory),
            "roles_path": str(settings.roles_dir),
            "flags": "--check" if settings.check else "",
        }
        try:
            with SupervisedJob(job, workspace.environment, settings.silence_s) as supervised:
                for message in supervised.messages(deadline, f"running {path.name}"):
                    if message["event"] == "end":
                        _require_finished(message, transcript, path)
                    else:
                        yield from transcript.add(message)
        except OutOfTimeError:
            yield from transcript.out_of_time()

    def _observed(self, playbook: str, result: HostResult) -> Observed[PlayOutcome]:
        evidence = Evidence(
            source=f"ansible-playbook {playbook}",
            where=result.outcome.host,
            at=self._settings.clock.now(),
            origin=self._settings.origin,
            content=result.tasks,
        )
        return Observed(result.outcome, (evidence,))


def with_reason(
    outcome: PlayOutcome, hosts: Sequence[HostAddress], workspace: Workspace, deadline: Deadline
) -> PlayOutcome:
    """Return the outcome with ssh's own message where Ansible lost it: it reports a broken pipe where ssh has
    refused the host and not ended yet.
    """
    if not outcome.unreachable or parse_ssh_failure(outcome.message) is not SshFailure.BROKEN:
        return outcome
    host = next(host for host in hosts if host.name == outcome.host)
    options = ssh_options(workspace.known_hosts, BatchMode="yes", ConnectTimeout=str(RETRY_S))
    place = ("-p", str(host.port), "-i", host.key_file, f"{host.user}@{host.address}")
    try:
        ran = run(["ssh", *options, *place, "true"], deadline.within(RETRY_S * 2))
    except EdgeError:
        return outcome
    words = ran.stderr.strip()[-KEPT:]
    return replace(outcome, message=f"{outcome.message} ({words})") if ran.exit_status and words else outcome


def _require_finished(end: Mapping[str, Any], transcript: Transcript, path: Path) -> None:
    """Raise if a host has no result when Ansible ends: the play itself is wrong. Ansible's output has the reason."""
    if not transcript.unfinished:
        return
    if end["full"]:
        raise EnvironmentBrokenError(
            "the disk under Ansible's work directory is full",
            where=end["full"],
            remedy="make room on that disk, then run the same command again: it goes on from here",
        )
    if end["rc"] == COMMAND_NOT_FOUND:
        raise EnvironmentBrokenError(
            "ansible-playbook was not found", where=str(path), remedy="install clusterctl with its dependencies"
        )
    printed = transcript.redact(str(end["output"]))[-KEPT:].strip() or "no output"
    left = ", ".join(transcript.unfinished)
    raise EdgeError(
        f"Ansible ended ({end['status']}, exit code {end['rc']}) without a result for {left}: {printed}",
        where=str(path),
        remedy="read Ansible's message; `ansible-playbook --syntax-check` shows mistakes in a playbook",
    )
