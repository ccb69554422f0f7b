"""One lab with servers of four vendors, sound and broken, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterctl_lab.vendor import Vendor
from lab.tests.lab_kit import RunningLab, clusterctl, needs_lab, running_lab

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]
SUBNET = "10.174.0.0/16"
SOUND = [f"node00{number}" for number in (1, 2, 3, 4)]
BROKEN = {
    "node005": ("missing-gpu:node005:gpu5", "gpu_count"),
    "node006": ("failed-psu:node006:PS3", "psu"),
    "node007": ("over-temperature:node007", "temperature"),
    "node008": ("dead-nvme:node008:bay2", "drives"),
}
"""Dell, Supermicro, HPE and DGX once more, each with another fault; and the check that must find it."""


def nodes(lab: RunningLab) -> dict[str, dict[str, Any]]:
    result = clusterctl("nodes", "--json", "--site", str(lab.site))
    return {node["name"]: node for node in json.loads(result.stdout)["nodes"]}


def test_four_vendors_are_discovered(tmp_path: Path) -> None:
    """Every sound machine is discovered, every broken one is stopped at discover by the check for its broken part."""
    vendors = [option for vendor in Vendor for option in ("--vendor", vendor.value)]
    faults = [option for fault, _ in BROKEN.values() for option in ("--fault", fault)]
    with running_lab("r1avend", SUBNET, tmp_path, "--hosts", "8", *vendors, *faults) as lab:
        skus = (lab.site / "site.yml").read_text()
        assert "skus: [lab-xe9680, lab-sys-821ge, lab-xl675d, lab-dgx-h100]" in skus
        clusterctl("discover", "--yes", "--site", str(lab.site), timeout_s=300)
        found = nodes(lab)
        assert {name: found[name]["stage"] for name in SOUND} == dict.fromkeys(SOUND, "discovered")
        for name, (_, check) in BROKEN.items():
            assert found[name]["stage"] == "quarantined", found[name]
            (why,) = json.loads(clusterctl("why", name, "--json", "--site", str(lab.site)).stdout)["nodes"]
            assert check in json.dumps(why)
            assert found[name]["cause"], found[name]
