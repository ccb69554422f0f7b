"""A cluster that was installed by hand: adopted, then configured, cabled, burned in and gold; no disk is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Stage
from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import Site

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(900)]

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
    """Adopt proves each machine and pins the host's own key; the other steps lead to gold as for any node."""
    before = {node: site.lab.ssh(node, "cat", "/etc/machine-id") for node in site.stages()}
    assert len(before) == HOSTS
    adopted = site.run("adopt", "*", "--yes")
    assert adopted.wait() == 0, adopted.stderr + adopted.stdout
    assert set(site.stages().values()) == {"installed"}
    known = dict(line.split(maxsplit=1) for line in (site.folder / "known_hosts").read_text().splitlines())
    assert {node.address: node.host_key for node in site.states()} == known
    run = site.run("bootstrap", "--yes")
    assert run.wait() == 0, run.stderr + run.stdout
    assert {node.stage for node in site.states()} == {Stage.GOLD}
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
