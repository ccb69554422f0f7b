"""Counters of network file systems: recorded ones of NFS and Lustre, and what is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.storage_clients import StorageCounters, parse_llite, parse_mountstats, parse_readings
from tests.paths import ROOT

DATA = Path(__file__).parent / "data/storage_clients"
NFS = (DATA / "mountstats.txt").read_text()
"""Recorded for prometheus/procfs (mountstats_test.go)."""
LUSTRE = (DATA / "llite.txt").read_text()
"""Recorded on a client of a DDN AI400X2 for whamcloud/lustre-collector."""
OLDER = (DATA / "llite-2.12.txt").read_text()
"""Recorded on a client of Lustre 2.12: the README of a reader named client_iops.py. The line with the file system's name is ours."""
PROGRAM = ROOT / "burnin/clusterctl_burnin/node/storage_clients.py"


def test_an_nfs_mount_has_bytes_of_the_server_and_operations_without_data() -> None:
    """Not those that programs asked for: the page cache answers many. READ is none of them, ACCESS is one."""
    assert parse_mountstats(NFS) == {"192.168.1.1:/srv/test": StorageCounters(1210214218, 0, 2927395007)}


def test_two_mounts_of_one_export_are_counted_once() -> None:
    """They share their counters; a second export has its own."""
    second = NFS.replace("/mnt/nfs/test", "/home")
    other = NFS.replace("/srv/test", "/srv/home").replace("1210214218", "7")
    found = parse_mountstats(NFS + second + other)
    assert {name: one.read_bytes for name, one in found.items()} == {
        "192.168.1.1:/srv/test": 1210214218,
        "192.168.1.1:/srv/home": 7,
    }


def test_a_lustre_client_has_its_operations_on_metadata() -> None:
    """Those that go to a metadata server; a permission that the client checks itself is none."""
    counts = (13812423, 13812423, 12, 14812440, 6906208, 7906554, 6939862, 6906208, 7)
    assert parse_llite(LUSTRE) == {"ai400x2": StorageCounters(0, 0, sum(counts))}


def test_an_older_lustre_client_has_bytes_and_operations() -> None:
    """Its counts have no times. What the client answers from its memory (seek, mmap, cached attributes) is no metadata."""
    counts = (
        *(24954124, 24949831, 8805354, 989375, 52731, 353538590, 270358, 588626727, 38561, 110032, 361281, 37362),
        *(1084004, 206715, 2766603, 200968, 989097),
    )
    assert parse_llite(OLDER) == {"scratch": StorageCounters(265110931821, 92635949694, sum(counts))}


def test_bytes_of_lustre_are_sums_and_mounts_of_one_file_system_are_added() -> None:
    """The third figure behind the unit, in both forms: with the sum of squares, and without."""
    one = "read_bytes 3 samples [bytes] 4096 1048576 2000000\nwrite_bytes 9 samples [bytes] 98303 4194304 33554431 7\n"
    text = f"llite.fs1-ffff9440f1003000.stats=\n{one}llite.fs1-ffff9440f1004000.stats=\n{one}"
    assert parse_llite(text) == {"fs1": StorageCounters(4000000, 67108862, 0)}


@pytest.mark.parametrize("text", ["", "device a mounted on /b with fstype nfs4 statvers=1.1\n\tbytes:\t1 2\n", "x" * 9])
def test_what_has_no_counters_has_none(text: str) -> None:
    assert (parse_mountstats(text), parse_llite(text)) == ({}, {})


@pytest.mark.parametrize(
    "answer", ["", "[]", '{"version": 1, "seconds": 0, "before": {}, "after": {}}', '{"version": 2}']
)
def test_an_answer_that_is_none_is_an_error(answer: str) -> None:
    with pytest.raises(ParseError, match="n1"):
        parse_readings(answer, where="n1")


def test_the_program_reads_this_machine_twice() -> None:
    """The real one: its answer is understood, whatever is mounted here."""
    text = f"{PROGRAM.read_text()}\nmain({{'seconds': 0.05}})\n"
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=600, check=True)
    assert "device " in json.loads(done.stdout)["before"]["mountstats"]
    assert parse_readings(done.stdout, where="n1").seconds >= 0.05
