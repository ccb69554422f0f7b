"""`clusterctl inventory`, as ansible-inventory reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from clusterctl.operations.context import open_site
from clusterctl.operations.inventory import host_variables, list_hosts, ssh_arguments
from tests.cli.site_of_three import append, run, write
from tests.edges.site.ready import SECRETS
from tests.edges.ssh.sshd import SSHD, Sshd
from tests.events import new_event
from tests.paths import ROOT, needs_checkout
from tests.steps.fakes import inventory as hardware

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPinnedKeyOfTheHost"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """n1 is gold and reached, n2 is in quarantine and reached, n3 has no address."""
    folder = write(tmp_path)
    context = open_site(folder)
    for name, address in (("n1", "10.0.1.1"), ("n2", "10.0.1.2")):
        events = ((Kind.NODE_ADDRESSED, {"address": address}), (Kind.HOST_KEY_PINNED, {"public": KEY}))
        context.journal.append([new_event("node", f"id-{name}", kind, data) for kind, data in events])
    context.journal.close()
    return folder


def listed(site: Path) -> dict[str, Any]:
    return dict(json.loads(run(site, "inventory", "--list").stdout))


def test_groups_and_host_variables(site: Path) -> None:
    """Stages and racks are groups; a host is reached by its pinned key alone; a node without an address is no host."""
    found = listed(site)
    assert found["gold"]["hosts"] == ["n1"]
    assert found["quarantined"]["hosts"] == ["n2"]
    assert found["rack_A01"]["hosts"] == ["n1", "n2"]
    assert set(found["all"]["children"]) >= {"gold", "quarantined", "rack_A01"}
    variables = found["_meta"]["hostvars"]
    assert variables.keys() == {"n1", "n2"}
    assert (variables["n1"]["ansible_host"], variables["n1"]["clusterctl_stage"]) == ("10.0.1.1", "gold")
    assert f"KnownHostsCommand=/bin/echo %H {KEY}" in variables["n1"]["ansible_ssh_common_args"]
    assert json.loads(run(site, "inventory", "--host", "n1").stdout) == variables["n1"]


def test_it_writes_nothing(site: Path) -> None:
    """It is a read: no file of the site is made, changed or removed, and it works where the site is read-only."""

    def files() -> dict[str, tuple[int, bytes]]:
        kept = (path for path in site.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in kept}

    before = files()
    run(site, "inventory", "--list")
    run(site, "inventory", "--host", "n1")
    assert files() == before


@pytest.mark.skipif(SSHD is None, reason="no sshd")
@pytest.mark.parametrize(("pinned", "accepted"), [("host", True), ("stranger", False)])
def test_a_real_ssh_accepts_the_pinned_key_alone(tmp_path: Path, pinned: str, accepted: bool) -> None:
    """Without a file of host keys, and on a port other than 22."""
    with Sshd(tmp_path) as sshd:
        host = sshd.address(host_key=pinned)
        login = ["-i", host.key_file, "-p", str(host.port), f"{host.user}@{host.address}", "true"]
        ran = subprocess.run(["ssh", *ssh_arguments(host), *login], capture_output=True, text=True, check=False)
    assert (ran.returncode == 0) is accepted, ran.stderr


def test_no_secret_is_in_it(site: Path) -> None:
    """Paths of keys are, what they hold is not."""
    text = run(site, "inventory", "--list").stdout
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("words", [(), ("--list", "--host", "n1"), ("--host", "n3"), ("--host", "n9")])
def test_wrong_words(site: Path, words: tuple[str, ...]) -> None:
    """One of the two, and a host of the inventory."""
    with pytest.raises(UsageError) as caught:
        run(site, "inventory", *words)
    assert caught.value.remedy


@needs_checkout
def test_ansible_reads_it(site: Path) -> None:
    """The real ansible-inventory lists groups and variables through the script in inventory/."""
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "CLUSTERCTL": str(programs / "clusterctl"),
        "CLUSTERCTL_SITE": str(site),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    argv = [str(programs / "ansible-inventory"), "-i", str(ROOT / "inventory/clusterctl"), "--list"]
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, cwd=site)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["gold"]["hosts"] == ["n1"]
    assert found["_meta"]["hostvars"]["n2"]["ansible_host"] == "10.0.1.2"


def test_groups_of_odd_names_are_valid_and_distinct(site: Path) -> None:
    """A rack's name may hold any character; two racks never share a group."""
    data = {"bmc": "192.0.2.1", "unit": 4}
    racks = {"n1": "hall-2.7", "n2": "hall-2/7"}
    append(
        site,
        [
            new_event("node", f"id-{name}", Kind.NODE_DESCRIBED, {**data, "name": name, "rack": rack})
            for name, rack in racks.items()
        ],
    )
    found = listed(site)
    groups = {name: found[name]["hosts"] for name in found["all"]["children"]}
    assert all(name.isidentifier() and name.isascii() for name in groups)
    assert sorted(hosts for name, hosts in groups.items() if name.startswith("rack_hall_2_7_")) == [["n1"], ["n2"]]


def test_held_nodes_are_a_group_and_retired_ones_no_hosts(site: Path) -> None:
    """The group `gold` is the published gold pool: a held node is in `held` alone. No play reaches a retired node."""
    run(site, "hold", "n1", "--reason", "its owner tests it", "--yes")
    append(site, [new_event("node", "id-n2", Kind.NODE_RETIRED, {"reason": "sold"})])
    found = listed(site)
    context = open_site(site)
    published = json.loads(Path(context.site.path(context.site.settings.pool)).read_text())
    context.journal.close()
    assert "gold" not in found
    assert published["gold"] == []
    assert found["held"]["hosts"] == ["n1"]
    assert found["_meta"]["hostvars"].keys() == {"n1"}


def test_a_serial_is_no_template_and_a_setting_no_way_around_the_pins(site: Path) -> None:
    """A machine reports its own serial. An ansible.cfg does not switch the check of host keys off."""
    data = {"inventory": inventory_to_data(hardware("{{ 1 + 1 }}")), "sku": "lab", "root_disk": "D"}
    append(site, [new_event("node", "id-n2", Kind.NODE_IDENTIFIED, data)])
    variables = listed(site)["_meta"]["hostvars"]["n2"]
    assert variables["clusterctl_serial"] == {"__ansible_unsafe": "{{ 1 + 1 }}"}
    assert variables["ansible_host_key_checking"] is True
    assert "StrictHostKeyChecking" not in variables["ansible_ssh_args"]


def test_it_is_what_the_operation_returns(site: Path) -> None:
    """Another front end has the same inventory without the command line."""
    context = open_site(site)
    assert list_hosts(context) == listed(site)
    assert host_variables(context, "n2")["clusterctl_rack"] == "A01"
    context.journal.close()
