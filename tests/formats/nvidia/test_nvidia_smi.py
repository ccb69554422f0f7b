from __future__ import annotations

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.nvidia.nvidia_smi import Recovery, Slowdown, parse_query, tree
from clusterctl.formats.nvidia.nvlink import parse_nvlink_status
from tests.formats.samples import sample

ONE = """
==============NVSMI LOG==============

Driver Version                            : 570.1
Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Serial Number                         : 0
    PCI
        GPU Link Info
            Link Width
                Max                       : 16x
                Current                   : 8x
    FB Memory Usage
        Used                              : 1234 MiB
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 1
            DRAM Uncorrectable            : 2
    Temperature
        GPU Current Temp                  : [Unknown Error]
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4242
            Type                          : C
            Name                          : python3
            Used GPU Memory               : 1200 MiB
"""


def test_the_recording_of_eight_h100_is_read_without_loss() -> None:
    """Every line of the recording is in the tree, every GPU has every value that we judge."""
    text = sample("nvidia-smi-query.535.161.08.out.0.valid")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("=")]
    assert sum(1 for _ in tree(text).walk()) == len(lines)
    log = parse_query(text)
    assert log.driver_version == "535.161.08"
    assert len(log.gpus) == text.count("Product Name") == 8
    for gpu in log.gpus:
        assert gpu.serial in text
        assert (gpu.pcie_width, gpu.pcie_width_max, gpu.processes) == (16, 16, ())
        unread = {name for name in gpu.__slots__ if getattr(gpu, name) is None}
        assert unread == {"slowed"}, "R535 counts no slowed times; all else is read"
        assert gpu.fabric.cluster is None, "R535 has no ClusterUUID"
        assert gpu.recovery == Recovery(None, required=False, recommended=False, repairs={}, lost=False, stopped=False)
        assert gpu.slowdown == Slowdown(hardware=True, hardware_thermal=False, power_brake=True, software_thermal=False)
        assert (gpu.spare_rows.low, gpu.spare_rows.none, gpu.memory_total, gpu.power.limit) == (0, 0, 81559, 700)
    assert [gpu.pci for gpu in log.gpus][:2] == ["0000:19:00.0", "0000:3b:00.0"]


def test_a_short_query_leaves_the_rest_unmeasured() -> None:
    """A recording of `-q -d PAGE_RETIREMENT`: eight GPUs, and None for everything that was not asked."""
    log = parse_query(sample("orig_nvsmi8_output.txt"))
    assert len(log.gpus) == 8
    assert {gpu.pcie_width for gpu in log.gpus} == {None}
    assert {gpu.processes for gpu in log.gpus} == {None}


def test_what_the_driver_could_not_read_is_none() -> None:
    """`[Unknown Error]` is no temperature; counters are added up; processes are named."""
    (gpu,) = parse_query(ONE).gpus
    assert gpu.temperature is None
    assert gpu.uncorrectable_since_boot == 3
    assert gpu.sram_uncorrectable_ever is None
    assert (gpu.pcie_width, gpu.memory_used) == (8, 1234)
    assert gpu.processes is not None
    assert [(p.pid, p.name) for p in gpu.processes] == [("4242", "python3")]


def test_one_unread_counter_makes_the_sum_unread() -> None:
    """A sum over a counter that could not be read would be too small."""
    (gpu,) = parse_query(ONE.replace("SRAM Uncorrectable            : 1", "SRAM Uncorrectable            : N/A")).gpus
    assert gpu.uncorrectable_since_boot is None


@pytest.mark.parametrize(
    "text", ["", "No devices were found\n", ONE.replace("GPUs                             : 1", "GPUs : 2")]
)
def test_what_is_not_a_complete_log_is_refused(text: str) -> None:
    """Empty, another answer, or fewer GPUs than it announces: no reading at all."""
    with pytest.raises(ParseError):
        parse_query(text)


def test_keys_and_values_of_a_tree() -> None:
    """Apart at the first ` : `; without a value none; blanks at the end of a line count for nothing in a key."""
    root = tree("GPU 00000000:1B:00.0  \n    Driver : r550 : x\n    Serial Number :\n    None : \n      Below   : 1\n")
    (gpu,) = root.children
    assert gpu.key == "GPU 00000000:1B:00.0"
    assert [(child.key, child.value) for child in gpu.walk()] == [
        ("Driver", "r550 : x"),
        ("Serial Number", None),
        ("None", ""),
        ("Below", "1"),
    ]
    assert gpu.number("None", "Below") == 1
    assert gpu.below("None", "Elsewhere").text("Below") is None


def test_nvlink_recordings() -> None:
    """Eight A100 with twelve links each; a GPU whose links are all inactive has none."""
    gpus = parse_nvlink_status(sample("nvidia-smi.nvlink.status.a100"))
    assert [len(gpu.active) for gpu in gpus] == [12] * 8
    assert {rate for gpu in gpus for rate in gpu.rates} == {25.0}
    (dead,) = parse_nvlink_status(sample("bad_nvlink_status.txt"))
    assert (dead.index, dead.active) == (6, ())


def test_an_inactive_link_is_distinguished_from_an_absent_one() -> None:
    """`<inactive>` keeps its place."""
    text = "GPU 0: NVIDIA H100 (UUID: GPU-0a)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
    (gpu,) = parse_nvlink_status(text)
    assert gpu.rates == (26.562, None)


@pytest.mark.parametrize(
    "text",
    ["", "\t Link 0: 25 GB/s\n", "GPU 0: H (UUID: GPU-0)\n\t Link 1: 25 GB/s\n", "GPU 0: H (UUID: GPU-0)\nwhat?\n"],
)
def test_nvlink_text_that_is_not_understood_is_refused(text: str) -> None:
    """No GPU, a gap in the links, a strange line."""
    with pytest.raises(ParseError):
        parse_nvlink_status(text)
