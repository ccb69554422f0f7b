"""The plan of network cables that a site may name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.site import contents, load_site
from clusterctl.fleet.errors import UsageError
from clusterctl_cli.commands.cable_verify import verify
from tests.cli import site_of_three

PLAN = "source_device,source_port,destination_device,destination_port\nmgmt,swp1,n1,eth0\nmgmt,swp2,n2,eth0\n"


def site_with(tmp_path: Path, plan: str | None, name: str = "ethernet.csv") -> Path:
    folder = site_of_three.write(tmp_path)
    text = (folder / "site.yml").read_text()
    (folder / "site.yml").write_text(text.replace("fabric:\n", f"fabric:\n  ethernet: {name}\n"))
    if plan is not None:
        (folder / name).write_text(plan)
    return folder


def test_a_site_without_one(tmp_path: Path) -> None:
    """Nothing is read, and nothing is missed."""
    site = load_site(site_of_three.write(tmp_path))
    assert contents.ethernet_plan(site) is None
    contents.check_files(site)


def test_it_is_read(tmp_path: Path) -> None:
    """With every cable, and its hosts known as such."""
    plan = contents.ethernet_plan(load_site(site_with(tmp_path, PLAN)))
    assert plan is not None
    assert (len(plan.cables), plan.hosts) == (2, {"n1", "n2"})


def test_a_roce_site_needs_no_infiniband_plan(tmp_path: Path) -> None:
    """Where one SKU is of InfiniBand, it does."""
    folder = site_with(tmp_path, PLAN)
    (folder / "wiring.csv").unlink()
    with pytest.raises(UsageError, match="wiring"):
        contents.check_files(load_site(folder))
    site = load_site(folder)
    contents.check_files(replace(site, skus=tuple(replace(sku, hca_link_layer="Ethernet") for sku in site.skus)))


@pytest.mark.parametrize(
    ("plan", "where"),
    [
        (None, "fabric.ethernet"),
        (PLAN.replace("swp2", "swp1"), "ethernet.csv:3"),
        (PLAN.replace("n1,", "n-1,").replace("mgmt,swp2,n2,eth0\n", ""), "ethernet.csv:2"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_touched(tmp_path: Path, plan: str | None, where: str) -> None:
    """A file that is not there, a port with two cables, a node under a misspelt name."""
    site = load_site(site_with(tmp_path, plan))
    with pytest.raises(UsageError) as caught:
        contents.check_files(site)
    assert where in str(caught.value.where)


def test_live_without_a_plan(tmp_path: Path) -> None:
    """The error has the place to name a plan."""
    with pytest.raises(UsageError, match="names no Ethernet plan") as caught:
        verify.main(["--live", "--site", str(site_of_three.write(tmp_path))], standalone_mode=False)
    assert "fabric.ethernet" in caught.value.remedy


def test_live_before_anything_is_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every host is inconclusive, none missing, and the exit code is 1."""
    code = verify.main(["--live", "--site", str(site_with(tmp_path, PLAN))], standalone_mode=False)
    output = capsys.readouterr().out
    assert code == 1
    assert "INCONCLUSIVE n1: no installed node of that name is known" in output
    assert "0 of 2 planned cables are proven, 0 observed: 0 to repair, 2 not measured" in output
