"""The Ansible edge against playbooks that run on this machine, and against a real sshd on loopback."""

from __future__ import annotations

import getpass
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.ansible.controller_transport.playbooks import with_reason
from clusterctl.edges.ansible.workspace import Workspace
from clusterctl.fleet.errors import CancelledError, EdgeError, UsageError
from clusterctl.fleet.finding import Observed, Origin
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from tests.edges.ansible.support import host, key_pair, playbooks, processes, processes_of
from tests.fake_timer import FakeTimer
from tests.paths import ROOT
from tests.ports import reserve_port


@pytest.fixture
def work_dir() -> Iterator[Path]:
    """A short path, as ssh's control sockets need it; afterwards nothing may lie or run there."""
    path = Path(tempfile.mkdtemp(prefix="pb", dir="/tmp"))
    yield path
    left = processes_of(path), [entry.name for entry in path.iterdir()]
    shutil.rmtree(path)
    assert left == ([], [])


def run(
    work_dir: Path, playbook: str, hosts: list[HostAddress], **variables: object
) -> dict[str, Observed[PlayOutcome]]:
    observed = playbooks(work_dir).run(playbook, hosts, variables, Deadline.after(900))
    return {each.value.host: each for each in observed}


def tasks(observed: Observed[PlayOutcome]) -> dict[str, dict[str, object]]:
    lines = observed.evidence[0].content.decode().splitlines()
    return {task["task"]: task for task in map(json.loads, lines)}


def test_each_host_has_its_own_truth(work_dir: Path) -> None:
    """One failed host does not colour the other; the message is the failed item's, not Ansible's summary of items."""
    outcomes = run(work_dir, "mixed.yml", [host("good1"), host("bad1")])

    assert outcomes["good1"].value == PlayOutcome("good1", ok=True, changed=1, changes=("Change something",))
    assert outcomes["bad1"].value == PlayOutcome(
        "bad1",
        ok=False,
        changed=1,
        failed_task="Fail on bad hosts",
        message="this host is bad: one",
        changes=("Change something",),
    )


def test_evidence_is_the_task_list_without_secrets(work_dir: Path) -> None:
    """Evidence holds each task and its result; no_log is respected, and a secret variable's value is masked."""
    outcomes = run(work_dir, "mixed.yml", [host("good1")], greeting="sesame-42", bmc_password="sesame-42")

    evidence = outcomes["good1"].evidence[0]
    assert (evidence.where, evidence.source, evidence.origin) == (
        "good1",
        "ansible-playbook mixed.yml",
        Origin.SIMULATED,
    )
    assert tasks(outcomes["good1"])["Change something"]["stdout"] == "(secret)"
    assert tasks(outcomes["good1"])["Fail, and be forgiven"]["status"] == "failed, ignored"
    assert b"sesame" not in evidence.content
    assert b"hidden-by-no-log" not in evidence.content


def test_an_unreachable_host_is_a_case_of_its_own(work_dir: Path) -> None:
    """A closed port is `unreachable`, with ssh's own reason, or with Ansible's where ssh was gone before it spoke."""
    outcome = run(work_dir, "remote.yml", [host("gone")])["gone"].value

    assert (outcome.ok, outcome.unreachable) == (False, True)
    assert "Connection refused" in outcome.message or "Broken pipe" in outcome.message


def test_deadline_ends_every_process(work_dir: Path) -> None:
    """A failed host is reported before the deadline; a hanging one at it, with its task; detached processes die too."""
    timer = FakeTimer()
    arrived: dict[str, bool] = {}
    outcomes = {}
    daemons_and_task = ["sleep 600"] * 3
    timer.advance_when(
        lambda: (
            arrived and [it for it in map(str.strip, processes_of(work_dir)) if it == "sleep 600"] == daemons_and_task
        )
    )
    for observed in playbooks(work_dir).run(
        "hang.yml", [host("slow"), host("bad")], {}, Deadline.after(600, timer=timer)
    ):
        arrived[observed.value.host] = timer.passed()
        outcomes[observed.value.host] = observed.value

    assert outcomes["bad"].message == "broken from the start"
    assert outcomes["slow"] == PlayOutcome(
        "slow",
        ok=False,
        changed=1,
        failed_task="Hang",
        message="not finished at the deadline",
        changes=("Detach a daemon",),
    )
    assert arrived == {"bad": False, "slow": True}
    assert processes_of(work_dir) == []


def test_cancel_ends_every_process(work_dir: Path) -> None:
    """A cancelled run raises `CancelledError` within a second or two and leaves nothing."""
    cancelled = threading.Event()
    outcomes = playbooks(work_dir).run("hang.yml", [host("slow"), host("bad")], {}, Deadline.after(60, cancelled))
    assert next(outcomes).value.host == "bad"
    assert processes_of(work_dir) != []

    cancelled.set()
    with pytest.raises(CancelledError):
        next(outcomes)
    assert processes_of(work_dir) == []


def test_a_caller_that_stops_listening_ends_the_run(work_dir: Path) -> None:
    """Closing the iterator is enough."""
    outcomes = playbooks(work_dir).run("hang.yml", [host("slow"), host("bad")], {}, Deadline.after(900))
    next(outcomes)
    outcomes.close()

    assert processes_of(work_dir) == []


def test_kill_9_of_the_caller_ends_the_run(work_dir: Path) -> None:
    """A controller that dies without a chance to clean up takes Ansible, its workers and their children with it."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom clusterctl.ports import Deadline\n"
        "from tests.edges.ansible.support import host, playbooks\n"
        "hosts = [host('slow'), host('bad')]\n"
        "for each in playbooks(Path(sys.argv[1])).run('hang.yml', hosts, {}, Deadline.after(900)):\n"
        "    print(each.value.host, flush=True)\n"
    )
    argv = [sys.executable, "-c", script, str(work_dir)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"bad\n"
        supervisors = [pid for pid, command in processes(work_dir).items() if "supervisor.py" in command]
        ended = [os.pidfd_open(pid) for pid in supervisors]
        caller.kill()

    assert len(ended) == 1
    assert select.select(ended, [], [], 15)[0] == ended
    os.close(ended[0])
    assert processes_of(work_dir) == []


def test_a_caller_that_is_stopped_loses_its_run(work_dir: Path) -> None:
    """A controller that is stopped cannot know whether its hosts are another's by now: Ansible ends while it sleeps, and
    when it wakes up it gets the reason.
    """
    script = (
        "import sys\nfrom pathlib import Path\nfrom clusterctl.fleet.errors import EdgeError\n"
        "from clusterctl.ports import Deadline\nfrom tests.edges.ansible.support import host, playbooks\n"
        "edge, hosts = playbooks(Path(sys.argv[1]), silence_s=5.0), [host('slow'), host('bad')]\n"
        "try:\n"
        "    for each in edge.run('hang.yml', hosts, {}, Deadline.after(900)):\n"
        "        print(each.value.host, flush=True)\n"
        "except EdgeError as error:\n    print(error)\n"
    )
    argv = [sys.executable, "-c", script, str(work_dir)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"bad\n"
        (supervisor,) = (pid for pid, command in processes(work_dir).items() if "supervisor.py" in command)
        ended = os.pidfd_open(supervisor)
        caller.send_signal(signal.SIGSTOP)
        assert select.select([ended], [], [], 30)[0] == [ended]
        os.close(ended)
        assert processes_of(work_dir) == []
        caller.send_signal(signal.SIGCONT)
        assert b"without a result for slow: the controller was stopped for 5 s" in caller.stdout.read()


def test_a_playbook_that_cannot_run_gives_the_reason(work_dir: Path) -> None:
    """A mistake in the playbook is no host's fault: `EdgeError` with Ansible's own words."""
    with pytest.raises(EdgeError, match="no_such_role"):
        run(work_dir, "broken.yml", [host("n1")])


def test_an_unknown_playbook_is_refused(work_dir: Path) -> None:
    """Nothing is started for a name that does not exist."""
    with pytest.raises(UsageError):
        run(work_dir, "absent.yml", [host("n1")])


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[HostAddress]:
    """A real sshd on loopback that admits one key; its host key pinned."""
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(server).exists():
        pytest.skip("openssh-server is not installed")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    host_private, host_public = key_pair()
    private, public = key_pair()
    for name, content in {"host": host_private, "key": private, "authorized": public}.items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o600)
    port = reserve_port("127.0.0.1")
    options = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "authorized",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
        "PasswordAuthentication": "no",
    }
    argv = [server, "-D", "-e", "-f", "/dev/null", *(f"-o{name}={value}" for name, value in options.items())]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"listening" in process.stderr.readline()
        yield replace(
            host("n1", port=port, host_key=host_public, key_file=str(tmp_path / "key")), user=getpass.getuser()
        )
        process.terminate()
        process.stderr.read()


def test_a_pinned_host_is_entered(work_dir: Path, sshd: HostAddress) -> None:
    """The pinned key admits the host; the ssh master that Ansible keeps open does not outlive the run."""
    outcome = run(work_dir, "remote.yml", [sshd])["n1"]

    assert outcome.value.ok
    assert tasks(outcome)["Ask who we are"]["stdout"] == getpass.getuser()
    assert processes_of(work_dir) == []


def test_another_host_key_is_refused(work_dir: Path, sshd: HostAddress) -> None:
    """A host that presents another key than the pinned one is never entered."""
    impostor = replace(sshd, host_key=key_pair()[1])
    outcome = run(work_dir, "remote.yml", [impostor])["n1"].value

    assert (outcome.ok, outcome.unreachable) == (False, True)
    assert "host key" in outcome.message.lower()


def test_a_message_of_ssh_that_ansible_lost_is_asked_again(work_dir: Path, sshd: HostAddress) -> None:
    """On a busy machine Ansible reports a broken pipe before ssh has ended with its reason."""
    impostor = replace(sshd, host_key=key_pair()[1])
    lost = PlayOutcome(sshd.name, ok=False, changed=0, unreachable=True, message="[Errno 32] Broken pipe")
    workspace = Workspace.create(work_dir)
    try:
        workspace.pin([impostor])
        found = with_reason(lost, [impostor], workspace, Deadline.after(900))
    finally:
        workspace.remove()

    assert found.message.startswith("[Errno 32] Broken pipe (")
    assert "host key" in found.message.lower()
