"""The sampler of a load, as a process of its own on the files of a made-up node."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusterctl_burnin.node import processes
from clusterctl_burnin.node.programs import load_sampler, load_samples
from tests.burnin.sampler_kit import PATIENCE_S, FakeNode, argv, sampling, settle

XID = "NVRM: Xid (PCI:0000:1b:00): 119, pid=1234, name=python3, Timeout after 45s of waiting for RPC response"


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"clusterctl-test-{os.getpid()}-{tmp_path.name}"


def test_a_quiet_load(node: FakeNode, address: str) -> None:
    """Nothing rose; how much was read, and the highest values, are there all the same."""
    with sampling(node, address) as running:
        settle(node)
        samples = running.samples()
        running.end()
        assert running.process.wait(PATIENCE_S) == 0
    assert (samples.counters, samples.errors, samples.kernel.lines) == ((), {}, ())
    assert samples.kernel.whole
    assert samples.read == {"port": 2, "pci": 4, "gpu_ecc": 2, "nvlink": 2, "congestion": 2}
    assert {
        (one.kind, one.part, one.gauge): one.high for one in samples.gauges if one.gauge in ("asic", "temperature")
    } == {
        ("adapter", "mlx5_0", "asic"): 61.0,
        ("adapter", "mlx5_1", "asic"): 61.0,
        ("gpu", "0", "temperature"): 60.0,
        ("gpu", "1", "temperature"): 64.0,
    }
    assert {one.limit for one in samples.highs("adapter")} == {105.0}
    assert set(samples.reasons) == {"0", "1"}
    assert samples.adapters == {"0000:9a:00.0": "mlx5_0", "0000:ba:00.0": "mlx5_1"}


def test_what_happens_in_the_middle_has_its_second(node: FakeNode, address: str) -> None:
    """An Xid, a flap, a replay, a memory error, a PCIe error and heat: each on its part, none in second 0."""
    with sampling(node, address) as running:
        settle(node)
        node.log(4, XID)
        node.count("class/infiniband/mlx5_1/ports/1/counters/link_downed", 4)
        node.count("class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", 4_000)
        node.links(1)
        node.rows(3)
        node.aer("0000:1b:00.0", "nonfatal", 2)
        node.heat(0, 108.5)
        settle(node)
        node.heat(0, 60)
        samples = running.samples()
    risen = {(one.kind, one.part, one.counter): one.rose for one in samples.counters}
    assert risen == {
        ("port", "mlx5_1", "link_downed"): 1,
        ("nvlink", "1", "errors"): 1,
        ("gpu_ecc", "1", "uncorrected"): 3,
        ("pci", "0000:1b:00.0", "nonfatal"): 2,
        ("congestion", "mlx5_0", "port_xmit_wait"): 3_995,
    }
    assert all(at > 0 for one in samples.counters for at, _ in one.rises)
    ((second, facility, level, text),) = samples.kernel.lines
    assert (facility, level, text) == ("kern", "warn", XID)
    assert second > 0
    (hot,) = [one for one in samples.highs("adapter") if one.part == "mlx5_0"]
    assert (hot.high, hot.low) == (108.5, 60.0)


def test_the_next_load_has_nothing_of_the_one_before(node: FakeNode, address: str) -> None:
    """One sampler serves the loads of a suite; what rose between two documents is of the second load."""
    with sampling(node, address) as running:
        settle(node)
        node.log(4, XID)
        node.count("class/infiniband/mlx5_1/ports/1/counters/link_downed", 4)
        node.heat(0, 108.5)
        settle(node)
        first = running.samples()
        node.heat(0, 60)
        node.count("class/infiniband/mlx5_1/ports/1/counters/link_downed", 6)
        settle(node)
        second = running.samples()
        assert running.process.poll() is None
    assert [one.rose for one in first.counters] == [1]
    assert len(first.kernel.lines) == 1
    assert [(one.part, one.counter, one.rose) for one in second.counters] == [("mlx5_1", "link_downed", 2)]
    assert [at < 0 for at, *_ in second.kernel.lines] == [True]
    assert second.kernel.whole
    assert second.kernel.earlier > 0
    (cold,) = [one for one in second.highs("adapter") if one.part == "mlx5_0"]
    assert cold.high == 60.0
    assert second.read == first.read
    assert second.began >= first.began


def test_a_source_that_cannot_be_read_stops_no_other(node: FakeNode, address: str) -> None:
    """No kernel log, an nvidia-smi that fails, a counter without a number: each is named, the rest is read."""
    (node.root / "dev/kmsg").unlink()
    (node.folder / "bin/nvidia-smi").write_text("#!/bin/sh\necho 'Unable to determine the device handle'; exit 15\n")
    with sampling(node, address) as running:
        (node.root / "sys/class/hwmon/hwmon1/temp1_input").write_text("?\n")
        samples = running.samples()
    assert set(samples.errors) == {"gpu", "adapter"}
    assert "Unable to determine" in samples.errors["gpu"]
    assert "kmsg" in samples.kernel.error
    assert not samples.kernel.whole
    assert samples.read["port"] == 2


def test_a_second_sampler_takes_the_place_of_the_first(node: FakeNode, address: str) -> None:
    """One that an earlier run has left behind ends, and the new one answers."""
    with sampling(node, address) as old, sampling(node, address) as new:
        assert old.process.wait(PATIENCE_S) == 0
        assert new.begun()  # the first answer may have been the old one's
        assert new.samples().seconds < PATIENCE_S


def test_a_sampler_answers_to_its_own_name(node: FakeNode, address: str) -> None:
    """One that ends does not answer for the one that begins: a load would start before it is sampled."""
    with sampling(node, address):
        assert load_samples.ask(f"\0{address}", b"ready \n", PATIENCE_S) == b"ready \n"
        assert load_samples.ask(f"\0{address}", b"ready a\n", PATIENCE_S) == b""


def test_it_ends_by_itself(node: FakeNode, address: str) -> None:
    """At its limit; no sampler is there to answer then."""
    with sampling(node, address, limit=1.0) as running:
        assert running.process.wait(PATIENCE_S) == 0
    with pytest.raises(OSError, match="refused"):
        load_samples.ask(f"\0{address}", b"end\n", 1.0)


def test_it_ends_with_its_session(node: FakeNode, address: str) -> None:
    """The supervisor of a session whose reader is gone (SSH lost, controller killed) ends it, and its nvidia-smi."""
    tag = str(node.folder / "bin")
    supervised = [sys.executable, processes.__file__, "600", *argv(node, address)]
    environment = {"PATH": f"{tag}:/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    session = subprocess.Popen(supervised, stdout=subprocess.PIPE, env=environment)
    assert load_samples.begun(f"\0{address}")
    assert session.stdout is not None
    session.stdout.close()
    session.wait(PATIENCE_S)
    until = time.monotonic() + PATIENCE_S
    while (left := _processes(tag)) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []


def _processes(word: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


def test_what_it_keeps_is_bounded(tmp_path: Path) -> None:
    """A storm of messages and of errors: the first ones are kept, the others counted."""
    kernel = load_sampler.KernelLog(tmp_path / "kmsg")
    kernel.add("".join(f"4,{n},1,-;line {n}\n SUBSYSTEM=pci\n" for n in range(load_sampler.MOST_LINES + 5)), 1.0)
    assert (len(kernel.lines), kernel.dropped) == (load_sampler.MOST_LINES, 5)
    series = load_sampler.Series()
    for value in range(1000):
        series.count(("port", "mlx5_0"), "symbol_error", value, float(value))
    (one,) = series.document()["counters"]
    assert (one["rose"], len(one["rises"])) == (999, load_sampler.MOST_RISES)


def test_a_counter_that_falls_is_named(tmp_path: Path) -> None:
    """It was reset while the load ran."""
    series = load_sampler.Series()
    for value in (7, 0, 1):
        series.count(("port", "mlx5_0"), "symbol_error", value, 1.0)
    (one,) = series.document()["counters"]
    assert (one["rose"], one["reset"]) == (1, True)
