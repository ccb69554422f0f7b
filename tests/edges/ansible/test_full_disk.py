"""Ansible's own disk is full: distinguished from a host's full disk, and from a disk that has room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.ansible.supervisor import disk_was_full, has_room


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    argv = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(tmp_path)]
    subprocess.run(argv, check=True)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_has_no_room(small: Path) -> None:
    """Asked by writing, since quotas and reserved blocks show in no figure."""
    assert has_room(str(small))
    (small / "ballast").write_bytes(bytes(40_000))
    assert not has_room(str(small))


@pytest.mark.parametrize(
    ("output", "full"),
    [
        ("TASK [a]\nERROR! [Errno 28] No space left on device: '/state/x'\n", True),
        ("fatal: [n1]: FAILED! => No space left on device\nPLAY RECAP\nn1: failed=1\n", False),
        ("", False),
    ],
)
def test_only_the_last_output_of_ansible_is_about_its_own_disk(output: str, full: bool) -> None:
    """A host's full disk stands in the middle of the output, with the host's name."""
    assert disk_was_full(output) is full
