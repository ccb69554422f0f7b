"""The role pytorch makes a virtual environment with real pip, out of an index in a folder; PyTorch is a stand-in."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.ports import Deadline, PlayOutcome
from tests.edges.ansible.support import host, playbooks
from tests.edges.ansible.torch_index import BROKEN, MODULE, write_index

INSTALLS = "pytorch : Install the one that is wanted"
GPUS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"


class Node:
    """A folder that all users may read, with what the role finds on a node: an index, a place, a driver or none."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "pytorch"
        modules = {"2.6.0+cu124": MODULE.format(version="2.6.0+cu124", gpus=2), "2.7.0": BROKEN}
        modules["2.8.0"] = MODULE.format(version="2.8.0", gpus=1)
        self.index = write_index(root / "index", modules)

    def apply(self, version: str, *, check: bool = False, **more: object) -> PlayOutcome:
        variables = {
            "pytorch_version": version,
            "pytorch_index_url": self.index,
            "pytorch_folder": str(self.folder),
            "__pytorch_nvidia_smi": str(self.root / "nvidia-smi"),
            **({} if os.geteuid() == 0 else {"__pytorch_unprivileged": []}),
            **more,
        }
        player = playbooks(self.root / "runs", check=check)
        (ran,) = player.run("pytorch.yml", [host("node001")], variables, Deadline.after(900))
        return ran.value

    def driver(self) -> None:
        program = self.root / "nvidia-smi"
        program.write_text(f"#!/bin/sh\nprintf '%s' '{GPUS}'\n")
        program.chmod(0o755)


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def node() -> Iterator[Node]:
    root = Path(tempfile.mkdtemp(prefix="torch", dir="/tmp"))
    root.chmod(0o755)
    (root / "runs").mkdir()
    yield Node(root)
    shutil.rmtree(root)


def test_what_is_wanted_is_installed_once(node: Node) -> None:
    """Check mode foretells it and touches nothing; the second run finds it; another version takes its place, and only
    then is anything changed. A user without rights can import it, whatever the umask of the one who made it.
    """
    foretold = node.apply("2.6.0", check=True)
    assert (foretold.ok, foretold.changes, node.folder.exists()) == (True, (INSTALLS,), False), foretold.message

    with umask(0o077):
        first = node.apply("2.6.0")
    assert (first.ok, first.changes) == (True, (INSTALLS,)), first.message
    again = node.apply("2.6.0+cu124")
    assert (again.ok, again.changed) == (True, 0), again.message
    assert node.apply("2.6.0", check=True).changed == 0
    other = node.apply("2.8.0")
    assert (other.ok, other.changes) == (True, (INSTALLS,)), other.message


def test_a_package_that_cannot_be_imported_is_no_success(node: Node) -> None:
    """A package that pip calls installed is imported, and the import's error is reported."""
    outcome = node.apply("2.7.0")

    assert not outcome.ok
    assert "libcudart.so.12" in outcome.message
    assert f"remove {node.folder}" in outcome.message


def test_it_has_to_find_every_gpu_of_the_driver(node: Node) -> None:
    """Two GPUs and two found pass; two and one do not, unless the driver waits for a reboot."""
    node.driver()
    both = node.apply("2.6.0")
    assert both.ok, both.message

    one = node.apply("2.8.0")
    assert not one.ok
    assert "the driver knows 2 GPUs, and PyTorch 2.8.0 can use 1" in one.message
    assert node.apply("2.8.0", nvidia_driver_reboot_required=True).ok


def test_a_folder_of_another_user_is_left_alone(node: Node) -> None:
    """What is no virtual environment is refused before anything is put into it."""
    node.folder.mkdir()
    (node.folder / "data").write_text("mine")
    outcome = node.apply("2.6.0")

    assert not outcome.ok
    assert "is no virtual environment and not empty (data)" in outcome.message
    assert [path.name for path in node.folder.iterdir()] == ["data"]
