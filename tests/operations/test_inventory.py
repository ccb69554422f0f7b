"""`clusterctl inventory`: groups and variables of the dynamic inventory, and what Ansible makes of it."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl_cli.main import run as run_command
from tests.cli.site_of_three import append, run, write
from tests.edges.site.ready import SECRETS, write_ready_site
from tests.edges.ssh.sshd import SSHD, Sshd
from tests.events import new_event
from tests.steps.fakes import inventory as hardware

SCRIPT = Path(__file__).parents[2] / "inventory" / "clusterctl.sh"
PROGRAMS = Path(sys.executable).parent
PINNED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIrmHHgBnQf0i1JpNbyPBzrGlrXOAvJPmzaF6E0oEtHs"
STAGES = {"seen", "discovered", "installed", "configured", "cabled", "burned_in", "gold", "quarantined"}

with_ansible = pytest.mark.skipif(not (PROGRAMS / "ansible").exists(), reason="needs Ansible beside this Python")
with_sshd = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs root and the openssh-server package")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site whose n1 is gold and reached by SSH, n2 in quarantine, n3 only in the sheet."""
    folder = write(tmp_path)
    append(folder, [pinned(PINNED)])
    return folder


def pinned(key: str) -> NewEvent:
    return new_event("node", "id-n1", Kind.HOST_KEY_PINNED, {"public": f"{key} root@n1"})


def described(name: str, rack: str) -> NewEvent:
    data = {"name": name, "bmc": "192.0.2.1", "rack": rack, "unit": 4}
    return new_event("node", f"id-{name}", Kind.NODE_DESCRIBED, data)


def listed(site: Path) -> dict[str, Any]:
    document = json.loads(run(site, "inventory", "--list").stdout)
    assert isinstance(document, dict)
    return document


def groups(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of the nodes by group, without empty groups."""
    return {name: group["hosts"] for name, group in document.items() if name != "_meta" and group["hosts"]}


def test_groups_are_stages_skus_racks_and_the_gold_pool(site: Path) -> None:
    """All stages are there, also empty ones: a play over one of them does not warn."""
    document = listed(site)
    assert {*document} >= {"_meta", "held"} | STAGES
    assert groups(document) == {
        "gold": ["n1"],
        "quarantined": ["n2"],
        "seen": ["n3"],
        "sku_lab": ["n1", "n2"],
        "rack_A01": ["n1", "n2"],
        "rack_A02": ["n3"],
    }


def test_variables_are_those_of_the_plays_and_what_the_journal_knows(site: Path) -> None:
    """Ansible logs in with clusterctl's key and accepts the pinned host key alone; no file is written for it."""
    variables = listed(site)["_meta"]["hostvars"]["n1"]
    ssh = shlex.split(variables.pop("ansible_ssh_args"))
    assert {"StrictHostKeyChecking=yes", "UserKnownHostsFile=/dev/null", "IdentityAgent=none"} < {*ssh}
    assert f"KnownHostsCommand=/bin/echo %H {PINNED}" in ssh
    assert variables == {
        "ansible_host": "10.0.1.1",
        "ansible_port": 22,
        "ansible_user": "ops",
        "ansible_ssh_private_key_file": str(site / "secrets" / "ssh_ed25519"),
        "ansible_python_interpreter": "/usr/bin/python3",
        "clusterctl_stage": "gold",
        "clusterctl_serial": "S1",
        "clusterctl_sku": "lab",
        "clusterctl_rack": "A01",
        "clusterctl_unit": 4,
    }


def test_a_node_that_cannot_be_reached_is_listed_without_address(site: Path) -> None:
    """Where address or host key is unknown, ssh accepts no key: Ansible cannot reach another machine of that name."""
    variables = listed(site)["_meta"]["hostvars"]["n3"]
    ssh = shlex.split(variables.pop("ansible_ssh_args"))
    assert "StrictHostKeyChecking=yes" in ssh
    assert not [word for word in ssh if word.startswith("KnownHostsCommand")]
    assert not [name for name in variables if name.startswith("ansible_")]
    assert (variables["clusterctl_serial"], variables["clusterctl_rack"]) == ("S3", "A02")


def test_the_variables_of_one_node_are_those_of_the_list(site: Path) -> None:
    for name, variables in listed(site)["_meta"]["hostvars"].items():
        assert json.loads(run(site, "inventory", "--host", name).stdout) == variables


def test_a_held_node_leaves_gold_and_a_retired_one_the_inventory(site: Path) -> None:
    """`gold` is what the site publishes as its gold pool."""
    run(site, "hold", "n1", "--reason", "its owner tests it", "--yes")
    append(site, [new_event("node", "id-n2", Kind.NODE_RETIRED, {"reason": "sold"})])
    document = listed(site)
    assert (document["gold"]["hosts"], document["held"]["hosts"]) == ([], ["n1"])
    assert document["_meta"]["hostvars"]["n1"]["clusterctl_stage"] == "gold"
    assert {*document["_meta"]["hostvars"]} == {"n1", "n3"}
    assert "n2" not in str(groups(document))


def test_names_of_groups_are_valid_and_distinct(site: Path) -> None:
    """A rack's name may hold any character; two racks never share a group."""
    racks = {"n1": "Zürich 1/A", "n2": "hall-2.7", "n3": "hall-2-7"}
    append(site, [described(name, rack) for name, rack in racks.items()])
    found = groups(listed(site))
    assert not [name for name in found if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)]
    assert found["rack_Z_rich_1_A"] == ["n1"]
    assert sorted(hosts for name, hosts in found.items() if name.startswith("rack_hall_2_7_")) == [["n2"], ["n3"]]


def test_a_site_without_nodes_has_empty_groups(tmp_path: Path) -> None:
    """No site file is accepted without machines; the document keeps its form where all of them are retired."""
    folder = write_ready_site(tmp_path / "site")
    retired = new_event("node", "id-node001", Kind.NODE_RETIRED, {"reason": "sold"})
    append(folder, [described("node001", "A01"), retired])
    document = listed(folder)
    assert document["_meta"] == {"hostvars": {}}
    assert not groups(document)


@pytest.mark.parametrize("words", [["--host", "n9"], [], ["--list", "--host", "n1"]])
def test_wrong_input_is_exit_code_2(site: Path, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """An unknown node, no question, and two questions."""
    assert run_command(["inventory", *words, "--site", str(site)]) == 2
    answer = capfd.readouterr()
    assert answer.out == ""
    assert answer.err.startswith("error: ")


def test_a_retired_node_is_refused_by_name(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    append(site, [new_event("node", "id-n2", Kind.NODE_RETIRED, {"reason": "sold"})])
    assert run_command(["inventory", "--host", "n2", "--site", str(site)]) == 2
    assert "n2 is retired" in capfd.readouterr().err


def test_no_secret_is_printed(site: Path) -> None:
    """Neither passwords of the site nor a private key."""
    text = run(site, "inventory", "--list").stdout
    assert not [secret for secret in SECRETS if secret in text]
    assert "PRIVATE KEY" not in text


def ansible(site: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Ansible on the inventory script, as an operator without settings of their own does."""
    environment = {
        "PATH": f"{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(site.parent),
        "LANG": "C.UTF-8",
        "CLUSTERCTL_SITE": str(site),
    }
    argv = [str(PROGRAMS / program), "-i", str(SCRIPT), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, cwd=site.parent)


@with_ansible
def test_ansible_reads_it_without_a_warning(site: Path) -> None:
    """The groups and variables are Ansible's own ones then; a serial with a template in it stays a text."""
    evil = {"inventory": inventory_to_data(hardware("{{ 1 + 1 }}")), "sku": "lab", "root_disk": "D"}
    append(site, [new_event("node", "id-n2", Kind.NODE_IDENTIFIED, evil)])
    ran = ansible(site, "ansible-inventory", "--list")
    assert (ran.returncode, ran.stderr) == (0, "")
    found = json.loads(ran.stdout)
    assert {*found["all"]["children"]} >= {"gold", "quarantined", "seen", "sku_lab", "rack_A01", "rack_A02"}
    assert found["gold"]["hosts"] == ["n1"]
    assert found["_meta"]["hostvars"]["n1"]["ansible_host"] == "10.0.1.1"
    shown = ansible(site, "ansible", "n2", "-c", "local", "-m", "debug", "-a", "var=clusterctl_serial")
    assert "{{ 1 + 1 }}" in shown.stdout
    assert "WARNING" not in shown.stderr


@with_ansible
@with_sshd
def test_ansible_reaches_the_host_with_the_pinned_key_alone(site: Path, tmp_path: Path) -> None:
    """`ansible gold -m ping` over a real sshd; with another key pinned it is refused, whatever ansible.cfg says."""
    (tmp_path / "ansible.cfg").write_text("[defaults]\nhost_key_checking = false\n")
    (tmp_path / "sshd").mkdir()
    with Sshd(tmp_path / "sshd") as sshd:
        shutil.copy(tmp_path / "sshd" / "user", site / "secrets" / "ssh_ed25519")
        here = ["-e", f"ansible_port={sshd.port}", "-e", f"ansible_user={getpass.getuser()}"]
        append(site, [new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": "127.0.0.1"})])
        for key, answer in (("host", "pong"), ("stranger", "UNREACHABLE")):
            append(site, [pinned(sshd.public(key))])
            ran = ansible(
                site, "ansible", "gold", "-m", "ping", "-e", f"ansible_control_path_dir={tmp_path}/{key[0]}", *here
            )
            assert answer in ran.stdout, ran.stdout + ran.stderr
