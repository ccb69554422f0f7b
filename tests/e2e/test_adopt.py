"""A cluster that was installed by hand: adopted, then taken to gold by `examples/operations.py`; no disk is written."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.fleet.event import Kind
from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import RUN_S, Site
from tests.paths import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(3600)]

HOSTS = 3


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Hosts that run with keys of their own; the site names no installer."""
    folder = tmp_path_factory.mktemp("adopt")
    with running_lab("e2ea", "10.221.0.0/16", folder, "--hosts", str(HOSTS), "--installed") as lab:
        by_hand(lab.site)
        yield Site(lab, folder / "runs")


def by_hand(site: Path, *, bmcs: bool = True) -> None:
    """Make it a site of machines that were installed by hand: no installer, and the hosts' addresses in the sheet.

    Without `bmcs` the sheet has none, and no serial either.
    """
    file = site / "site.yml"
    existing = "provisioning: {backend: existing}\nssh:"
    file.write_text(re.sub(r"(?ms)^provisioning:.*?^ssh:", existing, file.read_text()))
    known = [line.split()[0] for line in (site / "known_hosts").read_text().splitlines()]
    head, *rows = (site / "bmcs.csv").read_text().splitlines()
    if not bmcs:
        head, rows = "name", [row.partition(",")[0] for row in rows]
    rows = [f"{row},{address}" for row, address in zip(rows, known, strict=True)]
    (site / "bmcs.csv").write_text("\n".join([f"{head},address", *rows, ""]))


def test_a_cluster_installed_by_hand_becomes_gold(site: Site) -> None:
    """Adopt proves each machine and pins the host's own key; the other steps lead to gold as for any node.

    The second front end takes them there: its preview names each step, the healthy ones arrive, and the one with a fault is
    explained with its remedy.
    """
    before = {node: site.lab.ssh(node, "cat", "/etc/machine-id") for node in site.stages()}
    assert len(before) == HOSTS
    adopted = site.run("adopt", "*", "--yes")
    assert adopted.wait() == 0, adopted.stderr + adopted.stdout
    assert set(site.stages().values()) == {"installed"}
    known = dict(line.split(maxsplit=1) for line in (site.folder / "known_hosts").read_text().splitlines())
    assert {node.address: node.host_key for node in site.states()} == known
    site.lab("inject", "pcie-width", "node003:mlx5_3")
    command = [sys.executable, "examples/operations.py", str(site.folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert ran.returncode == 1, ran.stderr
    assert site.stages() == {"node001": "gold", "node002": "gold", "node003": "quarantined"}, ran.stdout
    assert "node001: configure → cable → burnin → admit" in ran.stdout
    assert "node001 is gold: nothing keeps it back" in ran.stdout
    _, _, explained = ran.stdout.partition("node003 is quarantined")
    assert "pcie_width" in explained
    assert "→ " in explained
    acts = {event.payload.act.value for event in site.events() if event.kind is Kind.ACT_INTENDED}
    assert not [act for act in acts if act.startswith(("install", "power", "inventory", "retire"))]
    assert {node: site.lab.ssh(node, "cat", "/etc/machine-id") for node in before} == before


def test_an_adopted_node_is_never_installed(site: Site) -> None:
    """Reinstallation and erase are refused, and a second adoption, each with what to do instead."""
    for words in (("install", "--reinstall", "node001"), ("retire", "node001", "--wipe", "--reason", "old")):
        refused = site.run(*words, "--dry-run")
        assert refused.wait() == 2, refused.stderr
        assert "never writes to its disks" in refused.stderr
    again = site.run("adopt", "node001", "--yes")
    assert again.wait() == 1
    assert "is gold already" in again.stderr


@pytest.fixture
def without_bmcs(tmp_path: Path) -> Iterator[Site]:
    """Hosts that run, of which the sheet has names and addresses only."""
    with running_lab("e2eb", "10.213.0.0/16", tmp_path, "--hosts", "2", "--installed") as lab:
        by_hand(lab.site, bmcs=False)
        yield Site(lab, tmp_path / "runs")


def test_hosts_without_a_bmc_become_gold_by_the_serial_that_the_operator_confirms(without_bmcs: Site) -> None:
    """The preview shows the serial of the host's firmware and that nothing confirms it; no BMC is asked on the way."""
    site = without_bmcs
    shown = site.run("adopt", "*", "--dry-run")
    assert shown.wait() == 0, shown.stderr
    assert site.run("adopt", "*", "--yes").wait() == 0
    adopted = {node.name: node for node in site.states()}
    assert {(node.stage.value, node.bmc) for node in adopted.values()} == {("installed", "")}
    assert len({node.serial for node in adopted.values()}) == len(adopted) == 2
    assert all(node.serial and node.serial in shown.stdout + shown.stderr for node in adopted.values())
    ran = site.run("bootstrap", "--yes")
    assert ran.wait() == 0, ran.stdout + ran.stderr
    assert set(site.stages().values()) == {"gold"}
    checked = site.run("check", "*")
    assert checked.wait() in (0, 4), checked.stdout
    asked = site.run("power", "status", "node001")
    assert asked.wait() == 1
    assert "no BMC" in asked.stdout + asked.stderr
    refused = site.run("power", "cycle", "node001", "--reason", "test", "--dry-run")
    assert refused.wait() == 2
    assert "no BMC" in refused.stderr
