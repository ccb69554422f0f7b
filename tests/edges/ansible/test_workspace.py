"""The private folder of a run: its permissions, and the options of ssh."""

from __future__ import annotations

import json
import stat
import tempfile
from pathlib import Path

import pytest

from clusterctl.edges.ansible.workspace import PlayLimits, Workspace, known_hosts_line
from clusterctl.fleet.errors import EnvironmentBrokenError
from tests.edges.ansible.support import PINNED, host


def test_only_the_owner_reads_it_and_secrets_stand_in_one_file(tmp_path: Path) -> None:
    """Folders 0700, files 0600; variables stand in extravars and nowhere else, also not in the environment."""
    workspace = Workspace.create(tmp_path)
    workspace.fill([host("n1")], {"bmc_password": "sesame-42"}, Path("/roles"), PlayLimits(forks=2))
    files = [path for path in workspace.root.rglob("*") if path.is_file()]

    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in workspace.root.rglob("*") if path.is_dir()} == {0o700}
    assert [path.name for path in files if "sesame-42" in path.read_text()] == ["extravars"]
    assert "sesame-42" not in str(workspace.environment)
    workspace.remove()
    assert list(tmp_path.iterdir()) == []


def test_ssh_trusts_only_the_pins(tmp_path: Path) -> None:
    """No other known_hosts, no agent, no configuration of the operator who runs it."""
    workspace = Workspace.create(tmp_path)
    workspace.fill([host("n1")], {}, Path("/roles"), PlayLimits(forks=2))
    config = (workspace.root / "ansible.cfg").read_text()

    assert "StrictHostKeyChecking=yes" in config
    assert f"UserKnownHostsFile={workspace.root}/known_hosts" in config
    assert "GlobalKnownHostsFile=/dev/null" in config
    assert "IdentityAgent=none" in config
    assert "-F none" in config
    assert json.loads(workspace.inventory.read_text())["all"]["hosts"]["n1"]["ansible_port"] == 1


def test_a_port_is_part_of_the_pinned_name() -> None:
    """As sshd(8) writes them: brackets where the port is not 22."""
    assert known_hosts_line(host("n1", port=22)) == f"127.0.0.1 {PINNED}\n"
    assert known_hosts_line(host("n1", port=2222)) == f"[127.0.0.1]:2222 {PINNED}\n"


def test_a_path_too_long_for_control_sockets_is_avoided(tmp_path: Path) -> None:
    """A control socket path that the kernel cannot hold would make every host look unreachable."""
    long = tmp_path / ("d" * 80)
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        workspace = Workspace.create(long, Path(short))
        assert workspace.root.parent == Path(short)

    with pytest.raises(EnvironmentBrokenError, match="too long"):
        Workspace.create(long, long)
