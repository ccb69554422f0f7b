"""Faults that show only while processors work: weak power supplies brake GPUs, a weak adapter hardly writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.registry import NODE_LOADS
from clusterctl_lab.emulators.host_tools.host import power
from clusterctl_lab.emulators.host_tools.host.facts import Facts, Hca
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.emulators.host_tools.offline_kit import loaded


def weak() -> Machine:
    return find("weak-power").apply(build(1, Layout(IPv4Network("10.88.0.0/16")), "unused"), "")


def test_each_load_alone_passes(tmp_path: Path) -> None:
    """That is what makes it hard to find."""
    with ThreadPoolExecutor() as pool:
        for name in ("gpu_load", "stress_ng"):
            (tmp_path / name).mkdir()
        ran = [pool.submit(loaded, weak(), tmp_path / name, NODE_LOADS[name]) for name in ("gpu_load", "stress_ng")]
    assert [[found.verdict for found in one.result()] for one in ran] == [[Verdict.PASS], [Verdict.PASS]]


def of(*, weak_power: bool) -> Facts:
    """Facts of a machine, of which only its power supplies matter."""
    return Facts(weak_power=weak_power)


def with_work(folder: Path) -> Path:
    """Write what the kernel shows of a program of the lab's that loads the processors, and of another one."""
    for pid, words in ((1, "/sbin/init"), (7, "/usr/bin/python3\0-IS\0/usr/local/bin/cpu-memory-load\x0030\x0070\0")):
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "cmdline").write_text(words)
    return folder


def test_gpus_are_braked_while_processors_work(tmp_path: Path) -> None:
    """Others at work are none of the load."""
    processes = str(with_work(tmp_path))
    assert power.brakes_gpus(of(weak_power=True), processes)
    assert not power.brakes_gpus(of(weak_power=False), processes)


def test_a_weak_adapter_is_slow_while_processors_work(tmp_path: Path) -> None:
    """The others of its host are not."""
    processes = str(with_work(tmp_path))
    assert power.slows_adapter(Hca(load_slow=True), processes)
    assert not power.slows_adapter(Hca(load_slow=False), processes)
