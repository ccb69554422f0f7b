"""`Playbooks` by ansible-runner: one supervised job per run, one outcome and one piece of evidence per host."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.redaction import redaction
from clusterctl.edges.ansible.supervised import OutOfTimeError, SupervisedJob
from clusterctl.edges.ansible.transcript import KEPT, HostResult, Transcript
from clusterctl.edges.ansible.workspace import Settings, Workspace
from clusterctl.edges.disk import require_room
from clusterctl.edges.redaction import Redaction
from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.ports import LEASE_S, Clock, Deadline, HostAddress, PlayOutcome

COMMAND_NOT_FOUND = 127


class RunnerPlaybooks:
    """Meets `Playbooks`. Safe to use from several threads: runs share nothing but `work_dir`.

    Each run makes a folder of its own in `work_dir` (in the system's temporary folder where that path is too long for
    ssh's control sockets) and takes it away again. `secrets` are variables too, never repeated anywhere. With `check`
    nothing is changed, and `changed` counts what would be.
    """

    def __init__(
        self,
        *,
        work_dir: Path,
        playbooks_dir: Path,
        roles_dir: Path,
        forks: int,
        origin: Origin,
        clock: Clock,
        task_timeout: int = 1800,
        check: bool = False,
        secrets: Mapping[str, str] | None = None,
        silence_s: float = LEASE_S / 2,
    ) -> None:
        self._work_dir = work_dir
        self._playbooks_dir = playbooks_dir
        self._roles_dir = roles_dir
        self._settings = Settings(forks=forks, task_timeout=task_timeout)
        self._check = check
        self._silence_s = silence_s
        self._secrets = dict(secrets or {})
        self._origin = origin
        self._clock = clock

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Generator[Observed[PlayOutcome], None, None]:
        """Run `playbook` (a file name below `playbooks_dir`) on all `hosts`; yields one outcome per host.

        A host that is not over at the deadline gets an outcome that says so. `CancelledError` when cancelled,
        `EnvironmentBrokenError` without Ansible or room on the disk (no host is blamed for that), `EdgeError` when the
        play itself could not run. However it ends, also when the caller stops iterating, no process and no file of the
        run is left.
        """
        path = self._playbooks_dir / playbook
        if not path.is_file():
            raise UsageError("there is no such playbook", where=str(path), remedy="name one that lies there")
        if not hosts:
            return
        workspace = Workspace.create(self._work_dir)
        try:
            workspace.fill(hosts, {**variables, **self._secrets}, self._roles_dir, self._settings)
            with closing(self._results(path, workspace, hosts, variables, deadline)) as results:
                for result in results:
                    if not result.outcome.ok:
                        require_room(workspace.root.parent)
                    yield self._observed(playbook, result)
        except EdgeError:
            require_room(workspace.root.parent)
            raise
        finally:
            workspace.remove()

    def _results(
        self,
        path: Path,
        workspace: Workspace,
        hosts: Sequence[HostAddress],
        variables: Mapping[str, Any],
        deadline: Deadline,
    ) -> Generator[HostResult, None, None]:
        redact = redaction(variables, self._secrets)
        transcript = Transcript([host.name for host in hosts], redact)
        job = {
            "private_dir": str(workspace.root),
            "project_dir": str(self._playbooks_dir),
            "playbook": str(path),
            "inventory": str(workspace.inventory),
            "roles_path": str(self._roles_dir),
            "flags": "--check" if self._check else "",
        }
        with SupervisedJob(job, workspace.environment, self._silence_s) as supervised:
            try:
                for message in supervised.messages(deadline, f"running {path.name}"):
                    if message["event"] == "end":
                        _require_finished(message, transcript, path, redact)
                    else:
                        yield from transcript.hear(message)
            except OutOfTimeError:
                timed_out = True
            else:
                timed_out = False
        if timed_out:
            yield from transcript.out_of_time()

    def _observed(self, playbook: str, result: HostResult) -> Observed[PlayOutcome]:
        evidence = Evidence(
            source=f"ansible-playbook {playbook}",
            where=result.outcome.host,
            at=self._clock.now(),
            origin=self._origin,
            content=result.tasks,
        )
        return Observed(result.outcome, (evidence,))


def _require_finished(end: Mapping[str, Any], transcript: Transcript, path: Path, redact: Redaction) -> None:
    """Every host must be over when Ansible ends; else the play itself was wrong, and Ansible's last words say how."""
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
    said = redact(str(end["output"]))[-KEPT:].strip() or "it said nothing"
    left = ", ".join(transcript.unfinished)
    raise EdgeError(
        f"Ansible ended ({end['status']}, exit code {end['rc']}) without a result for {left}: {said}",
        where=str(path),
        remedy="read Ansible's message; `ansible-playbook --syntax-check` shows mistakes in a playbook",
    )
