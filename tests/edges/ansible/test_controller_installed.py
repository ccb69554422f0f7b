"""The role clusterctl_controller knows which wheel is installed, by what pip wrote (PEP 610)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.resources import resource

DIGEST = "5c" * 32
ARCHIVES = {
    "the older form": ({"hash": f"sha256={DIGEST}"}, DIGEST),
    "both forms, as pip 23.0.1 writes them": ({"hash": f"sha256={DIGEST}", "hashes": {"sha256": DIGEST}}, DIGEST),
    "the newer form": ({"hashes": {"sha256": DIGEST}}, DIGEST),
    "none, as pip 23.0.1 writes it for a path without a digest": ({}, "-"),
}


def answer(packages: Path) -> str:
    """Return what the role's program prints where these packages are installed."""
    role = yaml.safe_load((resource("roles") / "clusterctl_controller/vars/main.yml").read_text())
    argv = [sys.executable, "-S", "-c", role["__clusterctl_controller_ask"]]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("pip", ARCHIVES)
def test_the_digest_of_an_installed_wheel(tmp_path: Path, pip: str) -> None:
    """Read in both forms: a second run of the playbook does not install the same wheel again."""
    archive, digest = ARCHIVES[pip]
    record = tmp_path / "clusterctl-0.2.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: clusterctl\nVersion: 0.2.0\n")
    (record / "direct_url.json").write_text(json.dumps({"url": "file:///srv/clusterctl.whl", "archive_info": archive}))
    assert answer(tmp_path) == f"0.2.0 {digest}"


def test_nothing_is_installed(tmp_path: Path) -> None:
    assert answer(tmp_path) == "- -"
