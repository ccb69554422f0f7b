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


def by_hand(site: Path) -> None:
    """Make it a site of machines that were installed by hand: no installer, and the hosts' addresses in the sheet."""
    file = site / "site.yml"
    existing = "provisioning: {backend: existing}\nssh:"
    file.write_text(re.sub(r"(?ms)^provisioning:.*?^ssh:", existing, file.read_text()))
    known = [line.split()[0] for line in (site / "known_hosts").read_text().splitlines()]
    head, *rows = (site / "bmcs.csv").read_text().splitlines()
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
