"""Lost GPUs, bad memory, bad ports: one cause each, however many checks see it."""

from __future__ import annotations

from clusterctl.fleet.finding import Finding, Report
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.kernel_log import board_serials, parse_dmesg
from clusterctl.formats.nvidia.nvlink import parse_nvlink_status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import judge
from tests.burnin.kit import expected, readings, result
from tests.burnin.test_clock_and_port_checks import FAIL, LOST, ports


def roots(*findings: Finding) -> list[str]:
    return [finding.key for finding in Report("burnin", "bootstrap", findings).roots()]


def test_a_lost_gpu_without_a_word_in_the_log_is_one_root() -> None:
    """nvidia-smi reports no GPU while one is lost: all findings that are unmeasured by it point at the lost one."""
    lost = {name: result(name, LOST, rc=15) for name in ("nvidia_smi", "nvlink")}
    judged = judge(shipped_suite().checks, readings(**lost), expected())
    assert roots(*judged.findings) == ["gpu_count:gpu 0000:43:00.0"]


def test_a_lost_gpu_is_named_by_the_driver() -> None:
    """The serial in the kernel log, with the Xid 79 that is the root of all."""
    lost = {name: result(name, LOST, rc=15) for name in ("nvidia_smi", "nvlink")}
    log = (
        "[9.1] NVRM: GPU at PCI:0000:43:00: GPU-1\n[9.1] NVRM: GPU Board Serial Number: 165000010001\n"
        "[9.1] NVRM: Xid (PCI:0000:43:00): 79, GPU has fallen off the bus.\n"
    )
    judged = judge(shipped_suite().checks, readings(dmesg=lambda t: t + log, **lost), expected(inventory=None))
    assert roots(*judged.findings) == ["kernel_log:gpu 0000:43:00.0"]
    assert {f.serial for f in judged.findings if f.check == "kernel_log"} == {"165000010001"}


def test_serials_of_the_log_stay_with_their_gpu() -> None:
    """Two spellings of the driver's introduction; a serial before any GPU belongs to no GPU."""
    log = (
        "[1] NVRM: GPU Board Serial Number: 1\n[1] NVRM: GPU at PCI:0000:1b:00: GPU-1\n"
        "[1] NVRM: GPU Board Serial Number: 2\n[2] NVRM: GPU 0000:43:00.0: GPU serial number is 3.\n"
    )
    assert board_serials(parse_dmesg(log)) == {"0000:1b:00.0": "2", "0000:43:00.0": "3"}


def test_a_gpu_without_spare_rows_is_replaced() -> None:
    """Its failed remapping is the root of the Xids and errors that come with it: a reset would not help."""

    def failed(text: str) -> str:
        return text.replace("Remapping Failure Occurred        : No", "Remapping Failure Occurred        : Yes", 1)

    xid = "[9] NVRM: Xid (PCI:0000:1b:00): 64, Row Remapper: failed\n"
    judged = judge(shipped_suite().checks, readings(nvidia_smi=failed, dmesg=lambda t: t + xid), expected())
    assert roots(*judged.findings) == ["gpu_row_remap:gpu 0"]


def test_a_bad_port_explains_its_bandwidth() -> None:
    """ib_write_bw of that port and the all-reduce point at it; another port's bandwidth does not."""
    bad = CHECKS["hca_errors"].findings(readings(port_counters=ports({}, {"PortRcvErrors": 500})), expected())
    slow = [
        Finding(check="ib_write_bw", verdict=FAIL, code=Code.LOAD_SLOW, subject=name) for name in ("mlx5_0", "mlx5_1")
    ]
    linked = link_roots([*bad, *slow, Finding(check="all_reduce", verdict=FAIL, code=Code.LOAD_SLOW)])
    assert roots(*linked) == ["hca_errors:mlx5_0", "ib_write_bw:mlx5_1"]


def test_all_links_down_in_either_spelling() -> None:
    """Drivers write `inactive` and `inActive`."""
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
    assert parse_nvlink_status(text)[0].active == ()
