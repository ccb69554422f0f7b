"""The watch of the loads: a recorded load with errors in its middle, and what may go wrong with the watching itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.kernel_log import added_lines
from clusterctl.formats.host.load_samples import parse_load_samples
from clusterctl_burnin.check import Area
from clusterctl_burnin.loads.obstacles import obstacle
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.watch import NAME, LoadRun, disturbed, judge, watched
from tests.burnin.kit import START, Edit, expected, healthy_text, readings, result

SAMPLES = Path(__file__).parent / "data" / "load_samples"
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


def warmer(text: str) -> str:
    """The exporter's metrics of another moment: the power of each GPU has moved."""
    return re.sub(r"(DCGM_FI_DEV_POWER_USAGE[^}]*} )\d+", r"\g<1>97", text)


def after(**broken: ProbeResult | Edit) -> Readings:
    """What is read after the load of 900 s."""
    ports = broken.pop("port_counters_once", None)
    text = later(healthy_text("port_counters_once"))
    known = (
        result("port_counters_once", ports(text) if callable(ports) else text)
        if ports is None or callable(ports)
        else ports
    )
    others = {"dcgm_metrics": warmer, **broken}
    found = readings(port_counters_once=known, **others)
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


def sampled(**changes: Any) -> Edit:
    """The samples of a load, with other fields."""
    return lambda text: json.dumps({**json.loads(text), **changes})


def test_a_driver_that_counts_no_lost_time_is_sampled() -> None:
    """Drivers before R570 have no such counters: the reasons that were sampled count. One answer alone warns."""
    (only,) = found(readings(), after())
    assert "gpu_slowdown" in only.cause

    def held_back(times: int) -> Edit:
        cool = {"0x0000000000000004": {"samples": 100, "first": 0.1}}
        hot = {"0x0000000000000044": {"samples": times, "first": 33.0}}
        return sampled(reasons={"0": cool, "1": {**cool, **hot}})

    hot = bad(readings(), after(load_samples=held_back(9)))
    assert hot == {("gpu_slowdown", "gpu 1"): (Verdict.FAIL, Code.GPU_THROTTLED)}
    once = bad(readings(), after(load_samples=held_back(1)))
    assert once == {("gpu_slowdown", "gpu 1"): (Verdict.WARN, Code.GPU_THROTTLED)}
    unseen = bad(
        readings(), after(load_samples=sampled(reasons={"0": {"0x0000000000000004": {"samples": 9, "first": 0}}}))
    )
    assert unseen == {("gpu_slowdown", "gpu 1"): (Verdict.INCONCLUSIVE, Code.NOT_MEASURED)}


def counter(kind: str, part: str, name: str, rose: int, at: float = 412.0) -> dict[str, object]:
    return {"kind": kind, "part": part, "counter": name, "rose": rose, "rises": [[at, rose]], "reset": False}


@pytest.mark.parametrize(
    ("pci", "name", "rose", "subject", "verdict"),
    [
        ("0000:1b:00.0", "fatal", 1, "gpu 0", Verdict.FAIL),
        ("0000:9a:00.0", "nonfatal", 1, "mlx5_0", Verdict.FAIL),
        ("0000:9a:00.0", "correctable", 4000, "mlx5_0", Verdict.FAIL),
        ("0000:9a:00.0", "correctable", 2, "mlx5_0", Verdict.WARN),
        ("0000:97:01.0", "fatal", 1, "pci 0000:97:01.0", Verdict.FAIL),
    ],
)
def test_pcie_errors_that_only_the_kernel_counts(
    pci: str, name: str, rose: int, subject: str, verdict: Verdict
) -> None:
    """AER counters, on the GPU, adapter or bridge that has them; a few corrected ones in 15 minutes are noted."""
    then = after(load_samples=sampled(counters=[counter("pci", pci, name, rose)], seconds=900.0))
    (one,) = [one for one in found(readings(), then) if one.verdict is not Verdict.PASS]
    assert (one.check, one.subject, one.verdict, one.code) == ("pcie_width", subject, verdict, Code.PCIE_ERRORS)
    assert "first seen in second 412" in one.cause


def gauge(kind: str, part: str, name: str, high: float, **more: float) -> dict[str, object]:
    return {"kind": kind, "part": part, "gauge": name, "high": high, "at": 31.0, "low": 40.0, **more}


@pytest.mark.parametrize(
    ("hot", "subject", "code"),
    [
        (gauge("adapter", "mlx5_1", "asic", 103.0), ("transceivers", "mlx5_1"), Code.HCA_TOO_HOT),
        (gauge("adapter", "mlx5_1", "asic", 99.0, limit=98.0), ("transceivers", "mlx5_1"), Code.HCA_TOO_HOT),
        (gauge("adapter", "mlx5_1", "Module0", 76.0, limit=75.0), ("transceivers", "mlx5_1"), Code.HCA_TOO_HOT),
        (gauge("gpu", "1", "memory_temperature", 97.0), ("gpu_temperature", "gpu 1"), Code.GPU_TOO_HOT),
    ],
)
def test_what_was_hot_meanwhile(hot: dict[str, object], subject: tuple[str, str], code: Code) -> None:
    """It is cool again when the node is read: the peak counts, with its second."""
    then = after(load_samples=sampled(gauges=[hot]))
    assert bad(readings(), then) == {subject: (Verdict.FAIL, code)}
    assert any("in second 31" in one.cause for one in found(readings(), then) if one.verdict is Verdict.FAIL)


def test_a_module_without_a_threshold_and_a_kernel_without_sensors() -> None:
    """No threshold is made up; what did not watch is named."""
    unjudged = gauge("adapter", "mlx5_1", "Module0", 120.0)
    assert bad(readings(), after(load_samples=sampled(gauges=[unjudged]))) == {}
    (only,) = found(readings(), after(load_samples=sampled(sensors=0, gauges=[], read={})))
    assert "transceivers did not: the kernel shows no temperature" in only.cause
    assert "pcie_width did not: the kernel counts no AER errors" in only.cause


def test_a_load_that_was_not_sampled() -> None:
    """Its sampler died: what only it sees is INCONCLUSIVE, what is read before and after is judged as ever."""
    dead = replace(result("load_samples", "", rc=1), stderr="no sampler answers: Connection refused\n")
    then = after(load_samples=dead, dmesg=added(XID))
    assert bad(readings(), then) == {
        ("kernel_log", "gpu 0"): (Verdict.FAIL, Code.XID),
        **{
            (check, "node"): (Verdict.INCONCLUSIVE, Code.LOAD_NOT_SAMPLED)
            for check in ("gpu_slowdown", "gpu_temperature", "pcie_width", "transceivers")
        },
    }


def test_one_source_that_failed_is_inconclusive_alone() -> None:
    """nvidia-smi hung: adapters and PCIe were sampled all the same."""
    then = after(load_samples=sampled(errors={"gpu": "nvidia-smi printed nothing for 45 s"}))
    assert set(bad(readings(), then)) == {("gpu_slowdown", "node"), ("gpu_temperature", "node")}


def test_counters_of_memory_that_began_again_hide_no_other_module() -> None:
    """The first module's counters were reset, and the second one lost data: both are named."""

    def edac(corrected: int, uncorrected: int) -> Edit:
        def edit(text: str) -> str:
            document = json.loads(text)
            first, second, *_ = (one for mc in document["controllers"] for one in mc["modules"])
            first["corrected"], second["uncorrected"] = corrected, uncorrected
            return json.dumps(document)

        return edit

    before, then = readings(edac_counters=edac(9, 0)), after(edac_counters=edac(0, 1))
    assert (Verdict.FAIL, Code.MEMORY_UNCORRECTED) in bad(before, then).values()
    assert bad(before, then)["memory_errors", "node"][0] is Verdict.INCONCLUSIVE


def test_a_part_that_could_not_be_sampled_hides_no_other() -> None:
    """A device left the bus and one sensor is dead: the fatal error and the heat of the others are found."""
    then = after(
        load_samples=sampled(
            errors={"pci": "…/aer_dev_fatal: No such file or directory", "adapter": "…/temp2_input: I/O error"},
            counters=[counter("pci", "0000:1b:00.0", "fatal", 1)],
            gauges=[gauge("adapter", "mlx5_1", "asic", 103.0)],
        )
    )
    assert bad(readings(), then) == {
        ("pcie_width", "gpu 0"): (Verdict.FAIL, Code.PCIE_ERRORS),
        ("pcie_width", "node"): (Verdict.INCONCLUSIVE, Code.LOAD_NOT_SAMPLED),
        ("transceivers", "mlx5_1"): (Verdict.FAIL, Code.HCA_TOO_HOT),
        ("transceivers", "node"): (Verdict.INCONCLUSIVE, Code.LOAD_NOT_SAMPLED),
    }


def test_a_reset_device_is_inconclusive() -> None:
    """It was lost and found again meanwhile: what it counted before is not known."""
    begun = {**counter("pci", "0000:9a:00.0", "correctable", 0), "rises": [], "reset": True}
    assert bad(readings(), after(load_samples=sampled(counters=[begun]))) == {
        ("pcie_width", "node"): (Verdict.INCONCLUSIVE, Code.LOAD_NOT_SAMPLED)
    }


def test_the_recorded_samples_give_the_second() -> None:
    """Recorded by the sampler itself, on a made-up node with four errors in the middle of its load."""
    then = after(
        load_samples=lambda _: (SAMPLES / "four_errors.json").read_text(),
        dmesg=added(XID),
        port_counters_once=lambda text: counted(text, "mlx5_1", LinkDownedCounter=2),
        nvlink_errors_once=replayed,
        nvidia_smi=lambda text: text[: (second := text.index("\nGPU 00000000:", 1000))] + errors(text[second:]),
    )
    causes = {one.check: one.cause for one in found(readings(), then) if one.verdict is Verdict.FAIL}
    assert set(causes) == {"kernel_log", "hca_errors", "nvlink_errors", "gpu_ecc"}
    assert "second 3 of the load" in causes["kernel_log"]
    assert "first seen in second 4)" in causes["hca_errors"]
    assert "first seen in second 5)" in causes["nvlink_errors"]
    assert "first seen in second 6)" in causes["gpu_ecc"]
    mark = disturbed("gpu_load", found(readings(), then))
    assert mark is not None
    assert mark.verdict is Verdict.FAIL


def test_congestion_is_reported_and_accuses_nothing() -> None:
    """A loaded fabric is congested: the port that waited most is named in the watch's own finding, and it passes."""
    waited = [
        {"kind": "congestion", "part": part, "counter": counter, "rose": rose, "rises": [[1.0, rose]], "reset": False}
        for part, counter, rose in (
            ("mlx5_0", "port_xmit_wait", 4_000_000),
            ("mlx5_1", "port_xmit_wait", 90_000_000),
            ("mlx5_1", "rp_cnp_handled", 600),
        )
    ]
    (only,) = found(readings(), after(load_samples=sampled(seconds=60.0, counters=waited)))
    assert only.verdict is Verdict.PASS
    assert "mlx5_1 waited to send for 1.5e+06 ticks a second" in only.cause
    assert "mlx5_1 was slowed down by 10 congestion notices a second" in only.cause
    assert "mlx5_0 waited" not in only.cause


def test_the_samples_of_a_real_h100() -> None:
    """Recorded on an H100 under gpu_load, with a program that reads a wild address in second 13: what the sampler saw, at
    0.3 % of a processor; the load was at the power limit, with its clocks lowered and no other reason.
    """
    samples = parse_load_samples((SAMPLES / "h100-xid.json").read_text())
    assert samples.kernel.whole
    assert [text for *_, text in samples.kernel.lines if "Xid (PCI:0000:1b:00): 31" in text]
    assert {second for second, *_ in samples.kernel.lines} == {13.0}
    highs = {one.gauge: one.high for one in samples.highs("gpu")}
    assert (highs["power"], highs["temperature"], highs["memory_temperature"]) == (701.65, 57.0, 58.0)
    assert samples.rises("gpu_ecc") == ()


def test_a_followed_log_replaces_what_the_ring_lost() -> None:
    """The buffer went round, and the follower has every message: the Xid is found, and nothing is INCONCLUSIVE."""
    storm = "".join(f"kern  :info  : [Fri Jan  2 03:20:00 2026] storm {at}\n" for at in range(10))
    kernel = {"lines": [[2.0, "kern", "warn", XID.partition("] ")[2].strip()]], "lost": 0, "dropped": 0, "error": ""}
    then = after(dmesg=lambda _: storm, load_samples=sampled(kernel=kernel, began=START.timestamp() - 1))
    assert bad(readings(), then) == {("kernel_log", "gpu 0"): (Verdict.FAIL, Code.XID)}
    late = after(dmesg=lambda _: storm, load_samples=sampled(kernel=kernel, began=START.timestamp() + 5))
    assert (Verdict.INCONCLUSIVE, Code.KERNEL_LOG_CUT) in bad(readings(), late).values()


def test_a_sampler_that_goes_on_has_the_messages_since_the_reading_before_the_load() -> None:
    """It began with this load after the log was read, in one session: its last messages of before complete the log."""
    storm = "".join(f"kern  :info  : [Fri Jan  2 03:20:00 2026] storm {at}\n" for at in range(10))
    xid = XID.partition("] ")[2].strip()
    lines = [[-20.0, "kern", "warn", "NVRM: Xid (PCI:0000:1b:00): 48, of the load before"], [-2.0, "kern", "warn", xid]]
    kernel = {"lines": lines, "lost": 0, "dropped": 0, "error": "", "earlier": 30.0}
    then = after(dmesg=lambda _: storm, load_samples=sampled(kernel=kernel, began=START.timestamp() + 5))
    assert bad(readings(), then) == {("kernel_log", "gpu 0"): (Verdict.FAIL, Code.XID)}
    short = after(
        dmesg=lambda _: storm, load_samples=sampled(kernel={**kernel, "earlier": 3.0}, began=START.timestamp() + 5)
    )
    assert (Verdict.INCONCLUSIVE, Code.KERNEL_LOG_CUT) in bad(readings(), short).values()


def test_counters_that_begin_again_prove_nothing() -> None:
    """A GPU that was reset, a port whose counters were cleared: INCONCLUSIVE on that part."""
    before = readings(
        nvidia_smi=errors, port_counters_once=lambda text: counted(text, "mlx5_0", SymbolErrorCounter=500)
    )
    unmeasured = bad(before, after())
    assert unmeasured["gpu_ecc", "gpu 0"][0] is Verdict.INCONCLUSIVE
    assert unmeasured["hca_errors", "mlx5_0"][0] is Verdict.INCONCLUSIVE
    assert set(unmeasured) == {("gpu_ecc", "gpu 0"), ("hca_errors", "mlx5_0")}


def test_a_link_that_does_not_come_back_is_the_ports_failure() -> None:
    """Active before the load and down after it: a failure of that port, not a counter that proves nothing."""
    down = bad(readings(), after(ibstat=lambda text: text.replace("State: Active", "State: Down", 1)))
    assert down == {("hca_errors", "mlx5_0"): (Verdict.FAIL, Code.HCA_LINK_DOWNS)}
    always = readings(ibstat=lambda text: text.replace("State: Active", "State: Down", 1))
    found_then = bad(always, after(ibstat=lambda text: text.replace("State: Active", "State: Down", 1)))
    assert found_then["hca_errors", "mlx5_0"][0] is Verdict.INCONCLUSIVE


def test_a_counter_that_stands_still_hides_no_other_counter() -> None:
    """Full or cleared counters of a port: the link that went down meanwhile is found; without that, INCONCLUSIVE."""
    for before, then in (
        ({"SymbolErrorCounter": 0xFFFF}, {"SymbolErrorCounter": 0xFFFF}),
        ({"SymbolErrorCounter": 900}, {"SymbolErrorCounter": 3}),
        ({"SymbolErrorCounter": 0xFFF0}, {"SymbolErrorCounter": 0xFFFF}),
    ):
        first = readings(port_counters_once=lambda text, b=before: counted(text, "mlx5_0", **b))
        last = after(port_counters_once=lambda text, t=then: counted(text, "mlx5_0", **t))
        assert bad(first, last) == {("hca_errors", "mlx5_0"): (Verdict.INCONCLUSIVE, Code.NOT_MEASURED)}
        flapped = after(port_counters_once=lambda text, t=then: counted(text, "mlx5_0", **t, LinkDownedCounter=7))
        assert bad(first, flapped) == {("hca_errors", "mlx5_0"): (Verdict.FAIL, Code.HCA_LINK_DOWNS)}


def test_errors_that_a_reset_gpu_shows_are_of_the_load() -> None:
    """Its driver was loaded again meanwhile, and it shows an uncorrectable error since: a failure, and unmeasured."""
    before = readings(nvidia_smi=errors)
    then = after(
        nvidia_smi=lambda text: errors(text).replace("Uncorrectable            : 3", "Uncorrectable            : 1")
    )
    verdicts = {one.verdict for one in found(before, then) if (one.check, one.subject) == ("gpu_ecc", "gpu 0")}
    assert verdicts == {Verdict.FAIL, Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("probe", ["dmesg", "nvidia_smi", "nvlink_errors_once", "port_counters_once", "edac_counters"])
@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.MISSING])
def test_a_probe_that_hangs_or_is_missing_is_named(probe: str, status: Status) -> None:
    """Whether before or after the load: its checks are INCONCLUSIVE, and no check that read it passes by silence."""
    broken = result(probe, "", rc=None, status=status)
    readers = {check.name for check in WATCHED if check.watch and probe in {p.name for p in check.watch.probes}}
    optional = {"kernel_log", "nvlink_errors", "pcie_width"} if probe == "nvidia_smi" else set()
    last_only = {"gpu_temperature", *(["dcgm_exporter"] if probe == "nvidia_smi" else [])} & readers
    for before, then, blind in (
        (readings(**{probe: broken}), after(), readers - last_only),
        (readings(), after(**{probe: broken}), readers),
    ):
        silent = {check for (check, _), (verdict, _) in bad(before, then).items() if verdict is Verdict.INCONCLUSIVE}
        assert silent == blind - optional


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
