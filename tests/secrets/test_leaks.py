"""No secret leaves its place: one bootstrap of four machines, one broken and one that rejects us, searched for each."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.leaks import Search, journal_contents
from tests.secrets.campaign import NETWORK, NO_CORE, Observed, observed, secrets_in_use
from tests.secrets.capture import Capture

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]

LAB = "secrets"
STATE = Path("/var/lib/clusterctl-lab", LAB)
PLACES = {"bmcs.csv", "secrets/maas-api-key", "secrets/ssh_ed25519", "secrets/door-code"}
"""Where secrets may lie in the site directory, in addition to `state/host_keys/`; and nowhere else."""
EXTRA_VARIABLES = "extravars"
"""The one file of an Ansible run that holds secret variables, while the run lasts; ansible-playbook reads it."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("l")
    options = ("--hosts", "4", "--fault=wrong-bmc-password:node002", "--fault=missing-gpu:node003")
    with running_lab(LAB, str(NETWORK), folder, *options) as lab, observed(lab, folder / "tmp") as seen:
        yield seen


@pytest.fixture(scope="module")
def search(run: Observed) -> Search:
    return Search(secrets_in_use(run.site, run.environment))


def leaks(search: Search, contents: Iterable[tuple[str, bytes]]) -> list[str]:
    return [leak for where, content in contents for leak in search(content, where)]


def test_the_run_was_what_it_should_be(run: Observed) -> None:
    """Two gold, one of them by its own factory password; one broken; one whose BMC was given a wrong password once."""
    assert run.code == 1, run.outputs["stderr of bootstrap --yes -vv"].decode()[-3000:]
    nodes = {node["name"]: node for node in json.loads(run.outputs["stdout of nodes --json"])["nodes"]}
    stages = {name: node["stage"] for name, node in nodes.items()}
    gold, stopped = dict.fromkeys(["node001", "node002"], "gold"), dict.fromkeys(["node003", "node004"], "quarantined")
    assert stages == gold | stopped
    assert "rejects user name or password" in nodes["node004"]["cause"]


def test_outputs(run: Observed, search: Search) -> None:
    """Log at its most talkative, progress, reports, JSON."""
    assert b"DEBUG" in run.outputs["stderr of bootstrap --yes -vv"]
    assert len([text for text in run.outputs.values() if text]) >= 9
    assert not leaks(search, run.outputs.items())


def test_arguments_and_environments(run: Observed, search: Search) -> None:
    """No process has a secret in its arguments; none that we start has one in its environment."""
    (state, _) = run.watches
    assert sum("ansible-playbook" in command for command in state.commands)
    assert any("ssh" in command for command in run.environments)
    environments = [(name, content) for name, found in run.environments.items() for content in found]
    assert len(environments) >= 4
    assert not leaks(search, environments)
    assert not leaks(search, ((command[:80], command.encode()) for command in state.commands))


def test_files_while_it_ran(run: Observed, search: Search) -> None:
    """Ansible's artifacts, inventory, facts, temporary files: only the file of extra variables holds a secret."""
    (state, temporary) = run.watches
    files = {**state.files, **temporary.files}
    assert {"inventory.json", "ansible.cfg", EXTRA_VARIABLES} <= {path.name for path in files}
    assert any(path.parent.name == "job_events" for path in files)
    variables = [(str(path), content) for path, content in files.items() if path.name == EXTRA_VARIABLES]
    assert all(search(content, path) == [f"{path} holds the door code"] for path, content in variables if content)
    keys = run.site / "state/host_keys"
    others = [path for path in files if path.name != EXTRA_VARIABLES and path.parent != keys]
    assert not leaks(search, ((str(path), files[path]) for path in others))


def test_files_were_private(run: Observed) -> None:
    """Whatever the umask was (none): nothing of state or temporary files was ever open to others."""
    modes = {path: mode for watch in run.watches for path, mode in watch.modes.items() if path != run.temporary}
    private = [path for path in (run.site / "secrets").iterdir() if path.suffix != ".pub"]
    modes |= {path: path.stat().st_mode for path in (run.site / "secrets", *private)}
    bare = {str(path): stat.filemode(mode) for path, mode in modes.items() if mode & 0o077 and not stat.S_ISLNK(mode)}
    assert len(modes) > 20
    assert not bare


def test_journal(run: Observed, search: Search) -> None:
    """Every value of every table, evidence unpacked, and the database's files byte by byte."""
    contents = list(journal_contents(run.site / "state/journal.db"))
    assert sum(where == "table evidence" for where, _ in contents) > 10
    assert not leaks(search, contents)


def test_what_is_left(run: Observed, search: Search) -> None:
    """In the site directory secrets lie where they may and nowhere else; nothing is left in the temporary folder."""
    files = [path for path in run.site.rglob("*") if path.is_file()]
    holders = {str(path.relative_to(run.site)) for path in files if search(path.read_bytes(), "")}
    keys = {f"state/host_keys/node00{number}" for number in (1, 2)}
    assert keys <= holders <= PLACES | {f"state/host_keys/node00{number}" for number in range(1, 5)}
    assert holders >= PLACES
    assert not list((run.site / "state/ansible").iterdir())
    assert not list(run.temporary.iterdir())


def test_hosts(run: Observed, search: Search) -> None:
    """A host's disk holds its own host key, and no password or key of the controller or of another host."""
    found = {
        (path.relative_to(STATE), leak.removeprefix(" holds the ").rpartition(", line")[0] or leak)
        for path in STATE.rglob("*")
        if path.is_file() and not path.is_symlink()
        for leak in search(path.read_bytes(), "")
    }
    keys = {(path.name, secret) for path, secret in found}
    assert keys == {("ssh_host_ed25519_key", f"private key node00{number}") for number in (1, 2)}
    assert len(found) == 2


def test_network(run: Observed, search: Search) -> None:
    """Logins to BMCs, MAAS and hosts crossed the network, and no secret was readable on it."""
    capture = run.capture
    assert capture.packets > 1000
    assert capture.dropped == 0
    for port, greeting in {443: b"\x16\x03", 5443: b"\x16\x03", 22: b"SSH-2.0-"}.items():
        messages = [words for words in capture.to_port(port) if words]
        assert messages
        assert {words[:24] for words in messages if not words.startswith(greeting)} == set(), port
    assert not leaks(search, ((" to ".join(flow), messages) for flow, messages in capture.streams.items()))


def test_the_capture_sees_what_it_looks_for(run: Observed, search: Search) -> None:
    """A password that is sent in clear is found, also when it is cut into segments."""
    password = run.environment["CLUSTERCTL_BMC_PASSWORD"].encode()
    gateway = str(NETWORK[1])
    with Capture(NETWORK) as capture, socket.create_server((gateway, 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in password:
                client.sendall(bytes([byte]))
        accepted, _ = server.accept()
        accepted.close()
    assert leaks(search, ((str(flow), message) for flow, message in capture.streams.items()))


def test_no_core(run: Observed) -> None:
    """A crash of the controller would leave no core behind."""
    assert run.cores == NO_CORE


def test_the_search_finds_what_it_looks_for(run: Observed, search: Search) -> None:
    """Each of the files that may hold secrets is seen to hold some; each secret is distinct and long enough."""
    secrets = secrets_in_use(run.site, run.environment)
    assert len(set(secrets.values())) == len(secrets) >= 7 + 3 * 2
    assert min(len(secret) for secret in secrets.values()) >= 12
    assert all(search((run.site / name).read_bytes(), name) for name in PLACES)
    assert not search(b"nothing", "here")
