"""The watch of the loads: a recorded load with errors in its middle, and what may go wrong with the watching itself."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.kernel_log import added_lines
from clusterctl_burnin.check import Area
from clusterctl_burnin.loads.obstacles import obstacle
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.watch import NAME, LoadRun, disturbed, judge, watched
from tests.burnin.kit import START, Edit, expected, healthy_text, readings, result

RUN = LoadRun("gpu_load", START, 900.0)
WATCHED = watched(CHECKS.values())
XID = (
    "kern  :warn  : [Fri Jan  2 03:10:00 2026] NVRM: Xid (PCI:0000:1b:00): 119, pid=1234, name=python3, "
    "Timeout after 45s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL).\n"
)
"""As NVIDIA's open driver prints it (NVIDIA/open-gpu-kernel-modules#446)."""


def counted(text: str, port: str, **counters: int) -> str:
    """The counters of one port, set."""
    head, mark, rest = text.partition(f"=== {port} at")
    for name, count in counters.items():
        rest = re.sub(rf"{name}:(\.+)\d+", rf"{name}:\g<1>{count}", rest, count=1)
    return head + mark + rest


def later(text: str) -> str:
    """The same counters, 900 s later."""
    return re.sub(r"at 1000\.", "at 1900.", text)


def added(text: str) -> Edit:
    return lambda log: log + text


def after(**broken: ProbeResult | Edit) -> Readings:
    """What is read after the load of 900 s."""
    ports = broken.pop("port_counters_once", None)
    text = later(healthy_text("port_counters_once"))
    known = (
        result("port_counters_once", ports(text) if callable(ports) else text)
        if ports is None or callable(ports)
        else ports
    )
    found = readings(port_counters_once=known, **broken)
    moved = {name: replace(one, started=one.started + timedelta(seconds=900)) for name, one in found.probes.items()}
    return replace(found, probes=moved)


def found(before: Readings | str, then: Readings | str) -> list[Finding]:
    return list(judge(WATCHED, before, then, expected(), RUN).findings)


def bad(before: Readings | str, then: Readings | str) -> dict[tuple[str, str], tuple[Verdict, Code]]:
    return {
        (one.check, one.subject): (one.verdict, one.code)
        for one in found(before, then)
        if one.verdict is not Verdict.PASS
    }


def errors(text: str) -> str:
    return text.replace("DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 3", 1)


def replayed(text: str) -> str:
    """One packet was sent again on link 3 of the second GPU."""
    first, mark, second = text.partition("GPU 1:")
    return first + mark + second.replace("Link 3: Replay Errors: 0", "Link 3: Replay Errors: 1", 1)


def test_a_load_in_which_nothing_rose() -> None:
    """Old errors stand in the counters before and after: nothing is found, and the checks that watched are named."""
    (only,) = found(readings(), after())
    assert (only.check, only.subject, only.verdict) == (NAME, "gpu_load", Verdict.PASS)
    for check in ("kernel_log", "hca_errors", "nvlink_errors", "gpu_ecc", "gpu_row_remap", "gpu_pcie", "memory_errors"):
        assert check in only.cause
    assert disturbed("gpu_load", [only]) is None


def test_a_recorded_load_with_four_errors_in_its_middle() -> None:
    """An Xid, a flap of a port, an NVLink replay and memory errors: four findings on four parts, and the load did not
    pass.
    """
    then = after(
        dmesg=added(XID),
        port_counters_once=lambda text: counted(text, "mlx5_1", LinkDownedCounter=2),
        nvlink_errors_once=replayed,
        nvidia_smi=lambda text: text[: (second := text.index("\nGPU 00000000:", 1000))] + errors(text[second:]),
    )
    judged = judge(WATCHED, readings(), then, expected(), RUN)
    unsound = [one for one in judged.findings if one.verdict is not Verdict.PASS]
    assert {(one.check, one.subject): (one.verdict, one.code) for one in unsound} == {
        ("kernel_log", "gpu 0"): (Verdict.FAIL, Code.XID),
        ("hca_errors", "mlx5_1"): (Verdict.FAIL, Code.HCA_LINK_DOWNS),
        ("nvlink_errors", "gpu 1"): (Verdict.FAIL, Code.NVLINK_ERRORS),
        ("gpu_ecc", "gpu 1"): (Verdict.FAIL, Code.GPU_ECC_UNCORRECTABLE),
    }
    digests = {item.digest for item in judged.evidence}
    for one in unsound:
        assert "during gpu_load, from 03:04:05 UTC, 900 s" in one.cause
        assert one.evidence
        assert set(one.evidence) <= digests
    mark = disturbed("gpu_load", judged.findings)
    assert mark is not None
    assert (mark.check, mark.verdict, mark.code) == ("gpu_load", Verdict.FAIL, Code.LOAD_DISTURBED)
    assert mark.root in {one.key for one in unsound}


def test_what_was_there_before_is_not_of_the_load() -> None:
    """The same Xid, flap, replay and errors, all before the load: nothing rose."""
    before = readings(
        dmesg=added(XID),
        port_counters_once=lambda text: counted(text, "mlx5_1", LinkDownedCounter=2),
        nvlink_errors_once=replayed,
        nvidia_smi=errors,
    )
    then = after(
        dmesg=added(XID),
        port_counters_once=lambda text: counted(text, "mlx5_1", LinkDownedCounter=2),
        nvlink_errors_once=replayed,
        nvidia_smi=errors,
    )
    assert bad(before, then) == {}


def test_an_xid_that_only_warns_undoes_the_load() -> None:
    """Xid 31 by itself is a fault of a program, as a warning; a load that passes with it did not pass."""
    warned = Finding(check="kernel_log", verdict=Verdict.WARN, code=Code.XID, subject="gpu 0", cause="Xid 31")
    mark = disturbed("gpu_load", [warned])
    assert mark is not None
    assert (mark.verdict, mark.root) == (Verdict.INCONCLUSIVE, "")


def test_a_few_pcie_replays_warn_and_many_fail() -> None:
    """NVIDIA's limit is 8 in a minute: 5 in 15 minutes are noted, 900 fail."""

    def replays(count: int) -> Edit:
        return lambda text: re.sub(r"(Replays Since Reset +: )\d+", rf"\g<1>{count}", text, count=1)

    before = readings(nvidia_smi=replays(2))
    assert bad(before, after(nvidia_smi=replays(7)))["gpu_pcie", "gpu 0"] == (Verdict.WARN, Code.GPU_PCIE_REPLAYS)
    assert bad(before, after(nvidia_smi=replays(902)))["gpu_pcie", "gpu 0"] == (Verdict.FAIL, Code.GPU_PCIE_REPLAYS)


SLOWED = """\
    Clocks Event Reasons Counters
        SW Power Capping                  : 85032 us
        Sync Boost                        : 0 us
        SW Thermal Slowdown               : 0 us
        HW Thermal Slowdown               : {heat} us
        HW Power Braking                  : {brake} us
    FB Memory Usage
"""
"""The layout of driver 570."""


def slowed(heat: int, brake: int = 0) -> Edit:
    """The first GPU lost so many microseconds; the others none."""

    def edit(text: str) -> str:
        head, mark, rest = text.partition("    FB Memory Usage\n")
        return head + SLOWED.format(heat=heat, brake=brake) + rest.replace(mark, SLOWED.format(heat=0, brake=0))

    return edit


@pytest.mark.parametrize(
    ("heat", "brake", "verdict", "code"),
    [
        (1_000_000, 0, Verdict.WARN, Code.GPU_THROTTLED),
        (90_000_000, 0, Verdict.FAIL, Code.GPU_THROTTLED),
        (0, 90_000_000, Verdict.FAIL, Code.GPU_POWER_BRAKE),
    ],
)
def test_time_lost_to_heat_or_a_brake(heat: int, brake: int, verdict: Verdict, code: Code) -> None:
    """Of 15 minutes, 1 s is noted and 90 s fail, although the GPU is cool again when it is read."""
    then = after(nvidia_smi=slowed(heat, brake))
    assert bad(readings(nvidia_smi=slowed(0)), then) == {("gpu_slowdown", "gpu 0"): (verdict, code)}


def test_a_driver_that_counts_no_lost_time_is_named() -> None:
    """Drivers before R570 have no such counters: the watch's own finding names what it did not watch."""
    (only,) = found(readings(), after())
    assert "gpu_slowdown did not: the driver does not count" in only.cause


def test_counters_that_begin_again_prove_nothing() -> None:
    """A GPU that was reset, a port whose counters were cleared: INCONCLUSIVE on that part."""
    before = readings(
        nvidia_smi=errors, port_counters_once=lambda text: counted(text, "mlx5_0", SymbolErrorCounter=500)
    )
    unmeasured = bad(before, after())
    assert unmeasured["gpu_ecc", "gpu 0"][0] is Verdict.INCONCLUSIVE
    assert unmeasured["hca_errors", "mlx5_0"][0] is Verdict.INCONCLUSIVE
    assert set(unmeasured) == {("gpu_ecc", "gpu 0"), ("hca_errors", "mlx5_0")}


@pytest.mark.parametrize("probe", ["dmesg", "nvidia_smi", "nvlink_errors_once", "port_counters_once", "edac_counters"])
@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.MISSING])
def test_a_probe_that_hangs_or_is_missing_is_named(probe: str, status: Status) -> None:
    """Whether before or after the load: its checks are INCONCLUSIVE, and no check that read it passes by silence."""
    broken = result(probe, "", rc=None, status=status)
    readers = {check.name for check in WATCHED if check.watch and probe in {p.name for p in check.watch.probes}}
    optional = {"kernel_log", "nvlink_errors"} if probe == "nvidia_smi" else set()
    for before, then in ((readings(**{probe: broken}), after()), (readings(), after(**{probe: broken}))):
        silent = {check for (check, _), (verdict, _) in bad(before, then).items() if verdict is Verdict.INCONCLUSIVE}
        assert silent == readers - optional


@pytest.mark.parametrize("probe", ["dmesg", "nvidia_smi", "nvlink_errors_once", "port_counters_once", "edac_counters"])
def test_a_malformed_answer_is_no_pass(probe: str) -> None:
    """Text of another tool after the load."""
    assert Verdict.INCONCLUSIVE in {
        verdict for verdict, _ in bad(readings(), after(**{probe: lambda _: "what?\n"})).values()
    }


def test_a_gpu_that_is_gone_after_the_load() -> None:
    """nvidia-smi lists one GPU fewer: each check of GPUs reports that it could not compare all."""

    def one_fewer(text: str) -> str:
        head = text[: text.index("\nGPU 00000000:", 1000)]
        return re.sub(r"(Attached GPUs +: )2", r"\g<1>1", head) + "\n"

    codes = {
        code for (check, _), (_, code) in bad(readings(), after(nvidia_smi=one_fewer)).items() if check == "gpu_ecc"
    }
    assert codes == {Code.PARTS_MISSING}


@pytest.mark.parametrize(("before", "then"), [("no SSH: timed out", None), (None, "no SSH: timed out")])
def test_a_reading_that_failed(before: str | None, then: str | None) -> None:
    """Nothing watched the load: INCONCLUSIVE with the reason, and the load does not pass."""
    (only,) = found(before or readings(), then or after())
    assert (only.check, only.verdict) == (NAME, Verdict.INCONCLUSIVE)
    assert "no SSH: timed out" in only.cause
    assert disturbed("gpu_load", [only]) is not None
    assert obstacle(frozenset({Area.GPU}), [only]) is None


def test_a_node_that_booted_again() -> None:
    """Its counters began again with it: the boot is the finding."""
    (only,) = found(readings(), replace(after(), boot_id="boot-2"))
    assert (only.verdict, only.code) == (Verdict.FAIL, Code.LOAD_REBOOTED)


OLD = "".join(f"kern  :info  : [Fri Jan  2 03:00:{at:02} 2026] line {at}\n" for at in range(10))


def test_added_lines_after_the_clock_was_set() -> None:
    """Dmesg prints other times for old messages then; only the new message is added."""
    moved = OLD.replace("03:00", "03:07") + XID
    assert added_lines(OLD, moved).lines == (XID.rstrip("\n"),)


def test_added_lines_of_a_full_ring() -> None:
    """The oldest lines were overwritten: the new ones are known all the same."""
    assert added_lines(OLD, "".join(OLD.splitlines(keepends=True)[4:]) + XID) == added_lines(OLD, OLD + XID)


def test_a_ring_that_went_round_loses_messages() -> None:
    """No old line is left: what is there is judged, and the loss is INCONCLUSIVE."""
    storm = "".join(f"kern  :info  : [Fri Jan  2 03:20:00 2026] storm {at}\n" for at in range(10))
    lost = added_lines(OLD, storm)
    assert (len(lost.lines), lost.overrun) == (10, True)
    codes = {code for _, code in bad(readings(), after(dmesg=lambda _: storm + XID)).values()}
    assert {Code.XID, Code.KERNEL_LOG_CUT} <= codes


def test_the_same_line_again_is_a_new_message() -> None:
    """Two equal Xids, one before the load and one during it."""
    before = readings(dmesg=added(XID))
    assert ("kernel_log", "gpu 0") in bad(before, after(dmesg=added(XID + XID)))
