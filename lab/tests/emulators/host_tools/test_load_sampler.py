"""The lab's load-sampler has the protocol of the real one: it answers to its name, and has a document for each load."""

from __future__ import annotations

import os
import time
from pathlib import Path

from clusterctl.formats.host.load_samples import LoadSamples, parse_load_samples
from clusterctl_burnin.node.programs import load_samples
from clusterctl_lab.faults import find
from lab.tests.emulators.host_tools.test_gpu_load_faults import machine
from lab.tests.emulators.host_tools.tools_kit import ToolBox

LONG_S = 600.0


def asked(address: str) -> LoadSamples:
    return parse_load_samples(load_samples.ask(address, b"document\n", LONG_S).decode())


def test_one_sampler_serves_several_loads_and_ends_for_the_next_one(tmp_path: Path) -> None:
    """What the first load provoked is in its document alone; each GPU load makes further PCIe errors."""
    broken = find("ecc-under-load").apply(find("pcie-errors-under-load").apply(machine(), "gpu3"), "gpu2")
    box = ToolBox(tmp_path, broken)
    old = time.time() - 60
    os.utime(tmp_path / "etc/clusterctl-lab/machine.json", (old, old))
    note, address = tmp_path / "run/clusterctl-lab-gpus", f"\0{tmp_path}"
    sampler = box.start("load-sampler", "0.1", "1", str(LONG_S), "a")
    try:
        assert load_samples.begun(address, "a")
        assert load_samples.ask(address, b"ready b\n", LONG_S) == b""
        note.write_text(".")
        first = asked(address)
        note.write_text("..")
        second = asked(address)
        third = asked(address)
        following = box.start("load-sampler", "0.1", "1", str(LONG_S), "b")
        try:
            assert load_samples.begun(address, "b")
            assert sampler.wait(LONG_S) == 0
        finally:
            following.kill()
            following.wait()
    finally:
        sampler.kill()
        sampler.wait()
    assert [(one.kind, one.rose) for one in first.counters] == [("gpu_ecc", 1), ("pci", 1)]
    assert [(one.kind, one.rose) for one in second.counters] == [("pci", 1)]
    assert third.counters == ()
    assert first.began <= second.began <= third.began
