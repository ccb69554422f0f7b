"""Inventory against SKU: what passes, what fails, and that the unmeasured never passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.hardware.drives import root_disk
from clusterctl.fleet.hardware.matching import choose_sku, match
from clusterctl.fleet.hardware.products import names_gpu, names_machine, names_product
from clusterctl.fleet.hardware.sku import RootDisk, is_adapter
from clusterctl.fleet.node import (
    Cpu,
    Dimm,
    Drive,
    Fan,
    Gpu,
    Guid,
    Hca,
    Inventory,
    Mac,
    Nic,
    Psu,
    Rollup,
    Serial,
    Temperature,
)
from clusterctl.fleet.quantity import Quantity, exactly
from tests.fleet.skus import H100_X8

SKU = replace(
    H100_X8,
    name="gx8",
    manufacturer="example",
    model="GX-8000",
    gpu_model="h100",
    root_disk=RootDisk(model="BOOT", max_bytes=10**12),
    limits="gx8",
)
BOOT = Drive("Bay 0", "Example BOOT 480", 480 * 10**9, Serial("ROOT1"), "SATA", healthy=True)
WHOLE = Inventory(
    manufacturer="Example Inc.",
    model="GX-8000 rev B",
    serial=Serial("EX1"),
    cpu_count=2,
    memory_gib=2048.0,
    gpus=tuple(Gpu(f"GPU{n}", "NVIDIA H100 80GB HBM3", Serial(f"165{n}")) for n in range(1, 9)),
    hcas=tuple(Hca(f"PCIe Slot {n} ({n})", "ConnectX-7 NDR", Serial(f"MT{n}"), Guid(f"{n:016x}")) for n in range(1, 9)),
    nics=(Nic("1", Mac("02:00:00:00:00:01")),),
    drives=(
        BOOT,
        *(Drive(f"Bay {n}", "Example DATA", 3840 * 10**9, Serial(f"D{n}"), "NVMe", True) for n in range(1, 5)),
    ),
    psus=tuple(Psu(f"PS{n}", Serial(f"P{n}"), healthy=True) for n in range(1, 7)),
    temperatures=(
        Temperature("Inlet Temp", 25, 42, "OK", intake=True),
        Temperature("CPU1 Temp", 37, 99, "OK"),
        Temperature("GPU Temp", 40),
    ),
    health="OK",
)
CHECKS = (
    "sku_model",
    "gpu_count",
    "hca_count",
    "cpu_count",
    "memory_size",
    "drive_count",
    "root_disk",
    "drives",
    "psu",
    "temperature",
    "bmc_health",
)


def finding(check: str, **changed: Any) -> Finding:
    """The finding of one check on a machine that is whole but for what is changed."""
    return {found.check: found for found in match(replace(WHOLE, **changed), SKU)}[check]


def without(*gone: str) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in WHOLE.gpus or () if gpu.slot not in gone)


def test_a_whole_machine_passes() -> None:
    """One finding per aspect, all of them PASS, none with a remedy."""
    found = match(WHOLE, SKU)
    assert tuple(one.check for one in found) == CHECKS
    assert {one.verdict for one in found} == {Verdict.PASS}
    assert {one.remedy for one in found} == {""}


def test_a_bmc_that_reports_nothing_passes_nothing() -> None:
    """A BMC that reports its make only leaves every aspect but that one unmeasured, each with a remedy."""
    found = match(Inventory("Example", "GX-8000", Serial("EX1")), SKU)
    assert [one.check for one in found] == [check for check in CHECKS if check != "drives"]
    assert [one.verdict for one in found] == [Verdict.PASS] + [Verdict.INCONCLUSIVE] * 9
    assert all(one.remedy and not one.deterministic for one in found[1:])
    assert Report("discover", "", found).verdict is Verdict.INCONCLUSIVE


def test_unmeasured_gpus_do_not_pass_even_where_none_is_expected() -> None:
    """Missing is not the same as none."""
    sku = replace(SKU, gpu_count=0, gpu_model="")
    verdicts = {gpus: match(replace(WHOLE, gpus=gpus), sku)[1].verdict for gpus in (None, ())}
    assert verdicts == {None: Verdict.INCONCLUSIVE, (): Verdict.PASS}


@pytest.mark.parametrize(
    ("gone", "absent"),
    [
        (("GPU3",), "GPU3"),
        (("GPU3", "GPU5"), "GPU3, GPU5"),
        (("GPU1",), "GPU1"),
        (("GPU8",), "GPU0 or GPU8"),
        (("GPU1", "GPU4"), "GPU1, GPU4"),
    ],
)
def test_missing_gpus_are_named(gone: tuple[str, ...], absent: str) -> None:
    """The slot that is missing from the series stands in cause and remedy; where two are possible, both."""
    found = finding("gpu_count", gpus=without(*gone))
    assert (found.verdict, found.measured, found.expected) == (
        Verdict.FAIL,
        Quantity(8 - len(gone), "GPUs"),
        exactly(8, "GPUs"),
    )
    assert set(absent.split(", ")) <= set(found.cause.partition("absent: ")[2].split(", "))
    assert found.remedy.startswith("reseat the GPU in slot ")


@pytest.mark.parametrize(
    ("slots", "absent"),
    [
        ([f"Video.Slot.{n}-1" for n in range(21, 28)], "slot Video.Slot.28-1;"),
        ([f"Video.Slot.{n}-1" for n in range(22, 29)], "slot Video.Slot.21-1;"),
        ([f"GPU_{n}" for n in range(7)], "slot GPU_7;"),
        (["GPU_0", "GPU_2", "GPU_3", "GPU_4", "GPU_5", "GPU_6", "GPU_7"], "slot GPU_1;"),
        (["left", "right", "a", "b", "c", "d", "e"], "find the GPU that is missing"),
        ([f"GPU{n}" for n in (1, 2, 3)], "find the GPU that is missing"),
        ([f"Slot {n}" for n in (31, 33, 34, 37, 38, 39, 40)], "find the GPU that is missing"),
        (["GPU1"], "find the GPU that is missing"),
    ],
)
def test_series_of_slots(slots: list[str], absent: str) -> None:
    """Vendors number differently; where the series does not show it, nothing is guessed."""
    gpus = tuple(Gpu(slot, "H100") for slot in slots)
    assert absent in finding("gpu_count", gpus=gpus).remedy


def test_a_label_with_its_number_twice() -> None:
    """`PCIe Slot 3 (3)` is a series too."""
    hcas = tuple(hca for hca in WHOLE.hcas or () if hca.serial != "MT3")
    assert "slot PCIe Slot 3 (3);" in finding("hca_count", hcas=hcas).remedy


def test_parts_of_another_model() -> None:
    """They do not count, and the remedy names slot and serial of the wrong one."""
    odd = replace((WHOLE.gpus or ())[2], model="NVIDIA A100")
    found = finding("gpu_count", gpus=(*without("GPU3"), odd))
    assert (found.verdict, found.measured) == (Verdict.FAIL, Quantity(7, "GPUs"))
    assert "GPU3 (serial 1653) (NVIDIA A100)" in found.cause
    assert found.remedy == "replace the GPU in slot GPU3 (serial 1653) by one of the SKU's model"


def test_parts_of_unknown_model() -> None:
    """A missing model neither passes nor fails, unless the count is wrong in any case."""
    mute = Gpu("GPU3", "")
    assert finding("gpu_count", gpus=(*without("GPU3"), mute)).verdict is Verdict.INCONCLUSIVE
    short = finding("gpu_count", gpus=(*without("GPU3", "GPU4"), mute))
    assert (short.verdict, short.measured) == (Verdict.FAIL, Quantity(7, "GPUs"))
    assert short.remedy.startswith("reseat the GPU in slot GPU4;")


def test_too_many() -> None:
    """More than the SKU has is wrong too: it is another SKU."""
    more = (*(WHOLE.gpus or ()), Gpu("GPU9", "H100"))
    assert finding("gpu_count", gpus=more).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("check", "changed"),
    [
        ("gpu_count", {"gpus": None}),
        ("gpu_count", {"gpus": ()}),
        ("gpu_count", {"gpus": (*without("GPU3"), Gpu("GPU3", ""))}),
        ("hca_count", {"hcas": ()}),
        ("memory_size", {"memory_gib": None}),
    ],
)
def test_what_the_bmc_does_not_see_is_decided_by_the_host(check: str, changed: dict[str, Any]) -> None:
    """Unmeasured until the burn-in's check of the same name has measured it; not missing, and not there."""
    found = finding(check, **changed)
    assert (found.verdict, found.settled_by) == (Verdict.INCONCLUSIVE, "burnin")


def test_parts_that_the_bmc_calls_failing() -> None:
    """Module, fan, GPU and CPU by slot and serial, each a root of its own; the roll-up follows."""
    found = changed(
        dimms=(Dimm("DIMM A1", 65536, "X", Serial("M1"), healthy=False), Dimm("DIMM A2", 65536, "X", healthy=True)),
        fans=(Fan("FAN1", healthy=True), Fan("FAN2", healthy=False)),
        gpus=(*without("GPU3"), Gpu("GPU3", "H100", Serial("1653"), healthy=False)),
        cpus=(Cpu("CPU 1", "Example", healthy=False),),
        health="Critical",
        memory_gib=1984.0,
    )
    roots = [(one.check, one.subject, one.serial) for one in found.roots()]
    assert roots == [("cpus", "CPU 1", ""), ("dimms", "DIMM A1", "M1"), ("gpus", "GPU3", "1653"), ("fans", "FAN2", "")]
    assert "DIMM A1 (serial M1)" in found.roots()[1].remedy


@pytest.mark.parametrize(
    ("check", "changed", "verdict"),
    [
        ("sku_model", {"model": "GX-4000"}, Verdict.FAIL),
        ("cpu_count", {"cpu_count": 1}, Verdict.FAIL),
        ("memory_size", {"memory_gib": 1984.0}, Verdict.FAIL),
        ("memory_size", {"memory_gib": 4096.0}, Verdict.PASS),
        ("psu", {"psus": ()}, Verdict.INCONCLUSIVE),
        ("psu", {"psus": (Psu("PS1", healthy=True), Psu("PS2"))}, Verdict.INCONCLUSIVE),
        ("temperature", {"temperatures": None}, Verdict.INCONCLUSIVE),
        ("bmc_health", {"health": "Warning"}, Verdict.WARN),
        ("bmc_health", {"health": "Critical"}, Verdict.FAIL),
        ("bmc_health", {"health": "Splendid"}, Verdict.INCONCLUSIVE),
        ("drive_count", {"drives": (WHOLE.drives or ())[:-1]}, Verdict.FAIL),
        ("root_disk", {"drives": (replace(BOOT, serial=None), *(WHOLE.drives or ())[1:])}, Verdict.INCONCLUSIVE),
    ],
)
def test_aspects(check: str, changed: dict[str, Any], verdict: Verdict) -> None:
    """Each aspect by itself; what does not pass has a remedy."""
    found = finding(check, **changed)
    assert found.verdict is verdict
    assert bool(found.remedy) is (verdict is not Verdict.PASS)


def changed(**parts: Any) -> Report:
    return Report("discover", "", match(replace(WHOLE, **parts), SKU))


def test_a_failing_drive() -> None:
    """A drive that the BMC calls bad fails by slot and serial, whatever the count; the roll-up is its consequence."""
    drives = (*(WHOLE.drives or ())[:-1], replace((WHOLE.drives or ())[-1], healthy=False))
    (found,) = changed(drives=drives, health="Critical").roots()
    assert (found.check, found.subject, found.serial) == ("drives", "Bay 4", "D4")
    assert found.remedy == "replace the drive in slot Bay 4 (serial D4)"


def test_a_dead_root_disk_without_identity() -> None:
    """It fits no rule any more: that too is a consequence of its failure."""
    dead = Drive("Bay 0", "", 0, Serial("ROOT1"), healthy=False)
    (found,) = changed(drives=(dead, *(WHOLE.drives or ())[1:])).roots()
    assert (found.check, found.subject) == ("drives", "Bay 0")


def test_drives_without_health_are_not_judged() -> None:
    """Nothing is claimed about unmeasured parts; where some are reported, only they count."""
    mute = tuple(replace(drive, healthy=None) for drive in WHOLE.drives or ())
    assert "drives" not in {one.check for one in match(replace(WHOLE, drives=mute), SKU)}
    assert finding("drives", drives=(*mute[:-1], *(WHOLE.drives or ())[-1:])).measured == Quantity(1, "drives")


def test_failing_power_supplies() -> None:
    """Each is a root of its own, by slot and serial, also where another reports nothing; the roll-up follows."""
    psus = tuple(
        replace(p, healthy={"PS3": False, "PS5": False, "PS6": None}.get(p.slot, True)) for p in WHOLE.psus or ()
    )
    roots = changed(psus=psus, health="Critical").roots()
    assert [(one.check, one.subject, one.serial) for one in roots] == [("psu", "PS3", "P3"), ("psu", "PS5", "P5")]
    assert "PS3 (serial P3)" in roots[0].remedy


def test_hot_air_explains_all_that_is_hot() -> None:
    """The inlet is the root, other sensors and the roll-up are its consequences; a second look must confirm it."""
    hot = (Temperature("CPU1 Temp", 101, 99), Temperature("Inlet Temp", 46, 42, "Critical", intake=True))
    (found,) = changed(temperatures=hot, health="Critical").roots()
    assert (found.subject, found.measured) == ("Inlet Temp", Quantity(46, "°C"))
    assert found.expected == "below 42 °C"
    assert not found.deterministic
    assert "cold aisle" in found.remedy


@pytest.mark.parametrize(
    ("sensor", "verdict"),
    [
        (Temperature("CPU1 Temp", 99, 99, "OK"), Verdict.FAIL),
        (Temperature("CPU1 Temp", 98, 99, "OK"), Verdict.PASS),
        (Temperature("DIMM Temp", 60, None, "Warning"), Verdict.WARN),
        (Temperature("DIMM Temp", 90, None, "Critical"), Verdict.FAIL),
        (Temperature("DIMM Temp", 60, None, "OK"), Verdict.PASS),
    ],
)
def test_a_sensor_by_threshold_and_by_the_bmcs_word(sensor: Temperature, verdict: Verdict) -> None:
    """The threshold itself is too hot already; where there is none, the BMC's word counts."""
    assert finding("temperature", temperatures=(sensor,)).verdict is verdict


def test_sensors_without_threshold_and_health_are_not_judged() -> None:
    """A temperature alone proves nothing: no finding rather than a pass."""
    bare = replace(WHOLE, temperatures=(Temperature("GPU Temp", 90),))
    assert "temperature" not in {one.check for one in match(bare, SKU)}


def test_a_roll_up_that_no_part_explains_stays_a_root() -> None:
    """The remedy refers to the BMC's log."""
    (found,) = changed(health="Critical").roots()
    assert found.check == "bmc_health"


@pytest.mark.parametrize(("health", "verdict"), [("OK", Verdict.WARN), ("Critical", Verdict.FAIL)])
def test_roll_ups_by_kind(health: str, verdict: Verdict) -> None:
    """What is not well is named; a BMC that calls the whole well all the same is not believed without a word."""
    found = finding("bmc_health", health=health, rollups=(Rollup("Storage", "Critical"),))
    assert found.verdict is verdict
    assert "(Storage Critical)" in found.cause


def test_a_root_disk_by_its_world_wide_name() -> None:
    """However it is written; a drive without one is not it."""
    named = replace(BOOT, wwn="eui.0025384B11B12D3C")
    inventory = replace(WHOLE, drives=(named, *(WHOLE.drives or ())[1:]))
    assert root_disk(inventory, RootDisk(wwn="0025384b11b12d3c")) == named
    with pytest.raises(EdgeError, match="no drive fits"):
        root_disk(WHOLE, RootDisk(wwn="0025384b11b12d3c"))


def test_the_root_disk_is_exactly_one() -> None:
    """None and several are errors that list the candidates; so does the finding."""
    assert root_disk(WHOLE, SKU.root_disk) == BOOT
    assert root_disk(WHOLE, RootDisk(serial="d2")).slot == "Bay 2"
    with pytest.raises(UsageError, match=r"4 drives fit the root disk rule: Bay 1 \(serial D1\)"):
        root_disk(WHOLE, RootDisk(model="DATA"))
    with pytest.raises(
        EdgeError, match=r"no drive fits the root disk rule \(at least 10000 GB\); there are: Bay 0 \(serial ROOT1\)"
    ):
        root_disk(WHOLE, RootDisk(min_bytes=10**13))
    with pytest.raises(EdgeError, match="reports no drive"):
        root_disk(replace(WHOLE, drives=None), SKU.root_disk)
    found = finding("root_disk", drives=(WHOLE.drives or ())[1:])
    assert (found.verdict, found.measured) == (Verdict.FAIL, Quantity(0))
    assert "Bay 1 (serial D1)" in found.cause


def test_choosing_a_sku() -> None:
    """By make, the closest model first, then by the kind of GPU; never by counts, and never by guess."""
    other = replace(SKU, name="other", model="GX-4000")
    close = replace(SKU, name="close", model="GX-8000 rev B")
    a100 = replace(SKU, name="a100", gpu_model="A100")
    half = replace(SKU, name="half", gpu_count=4)
    assert choose_sku(WHOLE, [other]) is None
    assert choose_sku(WHOLE, [other, SKU]) == SKU
    assert choose_sku(WHOLE, [SKU, close]) == close
    assert choose_sku(WHOLE, [a100, SKU]) == SKU
    assert choose_sku(replace(WHOLE, gpus=None), [a100, SKU]) is None
    assert choose_sku(replace(WHOLE, gpus=without("GPU1", "GPU2", "GPU3", "GPU4")), [half, SKU]) is None


@pytest.mark.parametrize(
    ("model", "wanted", "right"),
    [
        ("MCX75310AAS-NEAT", "ConnectX-7", True),
        ("ConnectX-7 P4768-B01", "MCX75310", True),
        ("NVIDIA ConnectX-7 NDR", "ConnectX-7", True),
        ("MCX75310AAS-NEAT", "MCX75310", True),
        ("MCX75343AMC-NEAC", "MCX75310", False),
        ("MCX653105A-HDAT", "ConnectX-7", False),
        ("MT2910 Family [ConnectX-7]", "ConnectX-7", True),
        ("BCM57508", "ConnectX-7", False),
        ("BlueField-3", "ConnectX-7", False),
        ("X710", "X710", True),
    ],
)
def test_an_adapter_is_known_by_its_family_or_its_part_number(model: str, wanted: str, *, right: bool) -> None:
    """The SKU and the BMC may name it either way; two part numbers must agree."""
    assert is_adapter(model, wanted) is right


@pytest.mark.parametrize(
    ("model", "wanted", "right"),
    [
        ("NVIDIA L40S", "L40", False),
        ("NVIDIA RTX A4000", "A40", False),
        ("NVIDIA A100-SXM4-80GB", "A10", False),
        ("NVIDIA GH200 480GB", "H200", False),
        ("NVIDIA GB200", "B200", False),
        ("NVIDIA A100-SXM4-80GB", "A100", True),
        ("NVIDIA H100SXM5", "h100", True),
        ("Tesla V100", "", True),
    ],
)
def test_a_gpu_is_known_by_whole_words(model: str, wanted: str, *, right: bool) -> None:
    """The name of another product that has the wanted one in it is not it."""
    assert names_product(model, wanted) is right


@pytest.mark.parametrize(
    ("reported", "wanted", "right"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM", True),
        ("NVIDIA H100 SXM5", "H100 SXM", True),
        ("H100SXM5", "H100 SXM", True),
        ("NVIDIA H100 PCIe", "H100 SXM", False),
        ("NVIDIA H100 NVL", "H100 SXM", False),
        ("NVIDIA H100 NVL", "H100 PCIe", False),
        ("NVIDIA H100 PCIe", "H100", True),
        ("NVIDIA H200 NVL", "H200 SXM", False),
        ("NVIDIA H200", "H200 SXM", True),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM", True),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB", True),
        ("NVIDIA A100-PCIE-40GB", "A100 SXM", False),
        ("NVIDIA A100 80GB PCIe", "A100 SXM", False),
        ("GA100 [A100 PCIe 40GB]", "A100 PCIe", True),
        ("NVIDIA GB200 NVL72", "GB200", True),
        ("NVIDIA GB200", "GB200 NVL", False),
        ("NVIDIA B200", "B200 SXM", True),
        ("NVIDIA L40S", "L40", False),
    ],
)
def test_a_form_factor_is_another_product(reported, wanted, right):
    """Where both names have a form factor it must be the same: a card for a slot is no module of a board."""
    assert names_gpu(reported, wanted) is right


@pytest.mark.parametrize(
    ("reported", "wanted", "right"),
    [
        ("PowerEdge R760xa", "R760", False),
        ("PowerEdge R760", "R760", True),
        ("PowerEdge R760xa", "r760XA", True),
        ("PowerEdge XE9680L", "XE9680", False),
        ("SYS-821GE-TNHR", "821GE", True),
        ("SYS-821GE-TNHR", "SYS-821GE-TNHR", True),
        ("ProLiant DL380a Gen11", "DL380a", True),
        ("ProLiant DL380a Gen11", "DL380", False),
        ("GB200 NVL72", "GB200 NVL", True),
        ("DGXH100", "DGXH100", True),
        ("HPE Cray XD670", "XD670", True),
    ],
)
def test_a_machine_of_another_model_is_not_taken(reported, wanted, right):
    """A SKU names whole words of a model."""
    assert names_machine(reported, wanted) is right
