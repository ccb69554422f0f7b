"""`clusterctl sku new|calibrate`: a SKU from a discovered machine, and limits from healthy nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from clusterctl.fleet.codec import inventory_to_data, report_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku_proposal import propose, sku_text
from clusterctl.fleet.node import Drive, Gpu, Hca, Inventory, NodeId, Psu, Serial, Unread
from clusterctl.fleet.quantity import Quantity
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import open_site
from clusterctl.ports import Deadline
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl_burnin.limits.reading import hardware_of_shipped, parse_limits
from tests.cli.site_of_three import append, run
from tests.edges.site.ready import write_ready_site
from tests.events import new_event
from tests.fleet.skus import H100_X8
from tests.steps.discover.test_discover import NoJournal
from tests.steps.fakes import FakeBmc, FakeBmcs, address_of, identified

LARGE = Inventory(
    manufacturer="Supermicro",
    model="SYS-821GE-TNHR",
    serial=Serial("A1"),
    cpu_count=2,
    memory_gib=2048,
    gpus=tuple(Gpu(f"GPU{n}", "NVIDIA H200 141GB HBM3e") for n in range(8)),
    hcas=tuple(Hca(f"Slot {n}", "ConnectX-7 NDR InfiniBand adapter") for n in range(8)),
    drives=(
        Drive("M.2 1", "SAMSUNG MZ1L2960", 960_197_124_096),
        *(Drive(f"Bay {n}", "KCD8", 3_840_755_982_336) for n in range(4)),
    ),
    psus=tuple(Psu(f"PSU{n}", healthy=True) for n in range(6)),
    temperatures=(),
    health="OK",
)

SOLD = {"sku": "dell-xe9680-h100", "root_disk": ""}
OPEN = Finding(
    check="zpool", verdict=Verdict.INCONCLUSIVE, code=Code.NO_LIMIT, cause="no figure", remedy="write the figure"
)
FAILED = replace(OPEN, check="gpu_ecc", verdict=Verdict.FAIL, code=Code.GPU_ECC_UNCORRECTABLE)


def stopped(name: str, *findings: Finding) -> list[NewEvent]:
    """Return what a burn-in writes that stops a node by these findings."""
    report = report_to_data(Report("burnin", "bootstrap", findings, frozenset({Origin.REAL})))
    stop = {"step": "burnin", "cause": "x", "remedy": "y", "verdict": "inconclusive"}
    return [
        new_event("node", f"id-{name}", Kind.REPORT_RECORDED, {"report": report}),
        new_event("node", f"id-{name}", Kind.NODE_QUARANTINED, stop),
    ]


def test_a_healthy_machine_leaves_only_what_no_machine_can_decide() -> None:
    """Family names instead of marketing names, the small drive as root disk, the shipped limits for its GPU."""
    fields = {one.name: one for one in propose("x", LARGE, hardware_of_shipped())}
    values = {name: one.value for name, one in fields.items()}
    assert values == {
        "name": "x",
        "manufacturer": "Supermicro",
        "model": "SYS-821GE-TNHR",
        "gpu_count": 8,
        "gpu_model": "H200",
        "hca_count": 8,
        "hca_model": "ConnectX-7",
        "hca_rate_gbps": None,
        "cpu_count": 2,
        "memory_gib": 2048,
        "data_drive_count": 4,
        "root_disk": {"max_gb": 2400},
        "psus": 6,
        "limits": "h200-sxm-ndr400",
    }
    assert {name for name, one in fields.items() if one.decide} == {"hca_rate_gbps", "root_disk"}


@pytest.mark.parametrize(
    ("inventory", "name", "value"),
    [
        (replace(LARGE, gpus=None), "gpu_count", None),
        (replace(LARGE, gpus=()), "gpu_count", 0),
        (replace(LARGE, gpus=(*LARGE.gpus[:7], Gpu("GPU7", "NVIDIA H100"))), "gpu_model", None),  # type: ignore[index]
        (replace(LARGE, gpus=tuple(Gpu(f"GPU{n}", "699-2G520-0200") for n in range(8))), "gpu_model", "699-2G520-0200"),
        (replace(LARGE, gpus=tuple(Gpu(f"GPU{n}", "699-2G520-0200") for n in range(8))), "limits", None),
        (replace(LARGE, memory_gib=None), "memory_gib", None),
        (replace(LARGE, memory_gib=1984 + 32), "memory_gib", 2016),
        (replace(LARGE, drives=LARGE.drives[1:]), "root_disk", None),  # type: ignore[index]
        (replace(LARGE, drives=()), "root_disk", None),
        (replace(LARGE, psus=None), "psus", None),
    ],
)
def test_what_the_machine_does_not_show_is_asked_for(inventory: Inventory, name: str, value: object) -> None:
    """Never filled in by a guess; a size that looks like a missing module is asked about."""
    one = next(one for one in propose("x", inventory, hardware_of_shipped()) if one.name == name)
    assert one.value == value
    assert one.decide


def test_two_small_drives_alike_are_one_root_disk_of_two() -> None:
    """Two M.2 of 960 GB before four U.2: any one of the two; they are no data drives."""
    second = replace(LARGE.drives[0], slot="M.2 2")  # type: ignore[index]
    fields = {one.name: one for one in propose("x", replace(LARGE, drives=(*(LARGE.drives or ()), second)), {})}
    assert fields["root_disk"].value == {"max_gb": 2400, "one_of": 2}
    assert fields["data_drive_count"].value == 4
    assert "any one of the 2 drives" in fields["root_disk"].decide
    assert "root_disk: {max_gb: 2400, one_of: 2}" in sku_text(tuple(fields.values()), "x")
    only = {one.name: one for one in propose("x", replace(LARGE, drives=(LARGE.drives[0], second)), {})}  # type: ignore[index]
    assert (only["data_drive_count"].value, only["root_disk"].value["one_of"]) == (0, 2)


def test_what_the_bmc_does_not_report_is_proposed_and_asked_about() -> None:
    """Power supplies without health, no temperatures: the SKU may declare it; a machine without a BMC declares nothing."""
    silent = replace(LARGE, psus=tuple(Psu(f"PSU{n}") for n in range(6)), temperatures=None)
    fields = {one.name: one for one in propose("x", silent, {})}
    assert fields["unreported"].value == ["psus", "temperatures"]
    assert fields["unreported"].decide
    assert 'unreported: ["psus", "temperatures"]' in sku_text(tuple(fields.values()), "x")
    bare = Inventory(manufacturer="Dell Inc.", model="PowerEdge R760", serial=Serial("A1"), on=True)
    assert "unreported" not in {one.name for one in propose("x", bare, {})}


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("A100-SXM4-80GB", "A100 SXM"),
        ("h200", "H200"),
    ],
)
def test_a_form_factor_is_proposed_where_it_is_known(model: str, wanted: str) -> None:
    gpus = tuple(Gpu(f"GPU{n}", model) for n in range(8))
    fields = {one.name: one for one in propose("x", replace(LARGE, gpus=gpus), {})}
    assert fields["gpu_model"].value == wanted


def test_ethernet_adapters_may_be_the_compute_fabric() -> None:
    """RoCE is proposed, and asked about."""
    cards = tuple(Hca(f"Slot {n}", "Mellanox ConnectX-6 Dx") for n in range(8))
    fields = {one.name: one for one in propose("x", replace(LARGE, hcas=(), ethernet_adapters=cards), {})}
    assert [fields[f"hca_{name}"].value for name in ("count", "model", "link_layer")] == [8, "ConnectX-6", "Ethernet"]
    assert fields["hca_count"].decide
    assert fields["hca_link_layer"].decide


def test_an_incomplete_list_is_asked_about() -> None:
    """One adapter could not be read: eight may be nine; a ninth adapter may be that of the storage."""
    lost = replace(LARGE, unread=(Unread("hcas", "/redfish/v1/Chassis/1/NetworkAdapters/9", "HTTP 500"),))
    fields = {one.name: one for one in propose("x", lost, {})}
    assert fields["hca_count"].decide
    assert not fields["gpu_count"].decide
    ninth = replace(LARGE, hcas=(*(LARGE.hcas or ()), Hca("Slot 9", "ConnectX-7")))
    asked = [propose("x", machine, {}) for machine in (LARGE, ninth)]
    assert [bool(one.decide) for proposed in asked for one in proposed if one.name == "hca_count"] == [False, True]


@pytest.mark.parametrize(
    ("model", "limits"), [("NVIDIA H100 80GB HBM3", "h100-sxm-ndr400"), ("NVIDIA H100 NVL", None), ("H100 PCIe", None)]
)
def test_a_card_has_not_the_limits_of_the_module(model: str, limits: str | None) -> None:
    gpus = tuple(Gpu(f"GPU{n}", model) for n in range(8))
    fields = {one.name: one for one in propose("x", replace(LARGE, gpus=gpus), hardware_of_shipped())}
    assert fields["limits"].value == limits
    assert bool(fields["limits"].decide) is (limits is None)


def test_text_of_a_bmc_becomes_no_syntax() -> None:
    """Quotes, line breaks and comment signs stay inside their strings and comments."""
    hostile = replace(LARGE, model='X"\nroot_disk: {serial: EVIL}\n#', manufacturer="A: [b]\x1b[31m # c")
    text = sku_text(propose("x", hostile, {}), f"node\n{hostile.model}")
    data = yaml.safe_load(text)
    assert data["model"] == hostile.model
    assert data["manufacturer"] == hostile.manufacturer
    assert "\x1b" not in text
    assert data["root_disk"] == {"max_gb": 2400}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Ten gold nodes of one SKU, n0 to n9."""
    site = write_ready_site(tmp_path / "site")
    names = [f"n{n}" for n in range(10)]
    (site / "bmcs.csv").write_text(
        "name,bmc_address,serial,rack\n" + "".join(f"{n},10.0.0.{n[1:]},S-{n},A01\n" for n in names)
    )
    journal = open_site(site).journal
    for number, name in enumerate(names):
        identified(journal, name, f"S-{name}", "gold")
        figures = [
            {"metric": "gpu_gemm_bf16", "subject": f"gpu {gpu}", "serial": "", "value": 700.0 + number + gpu}
            for gpu in range(8)
        ]
        data = {"population": "dell-xe9680-h100", "figures": figures}
        journal.append([new_event("node", f"id-{name}", Kind.FIGURES_MEASURED, data)])
        large = inventory_to_data(replace(LARGE, serial=Serial(f"S-{name}")))
        journal.append([new_event("node", f"id-{name}", Kind.NODE_IDENTIFIED, {"inventory": large} | SOLD)])
    journal.close()
    return site


def test_new_writes_a_file_once_and_lists_what_to_decide(site: Path) -> None:
    """The written file names every field; the second call keeps it."""
    result = run(site, "sku", "new", "--from", "n0")
    file = site / "skus" / "supermicro-sys-821ge-tnhr.yml"
    assert f"wrote {file}" in result.stdout
    assert "decide hca_rate_gbps: the rate of one port" in result.stdout
    assert file.read_text().count("DECIDE") == 3
    with pytest.raises(UsageError, match="the file exists"):
        run(site, "sku", "new", "--from", "n0")
    with pytest.raises(UsageError, match="no name of a file"):
        run(site, "sku", "new", "--from", "n0", "--name", "../x")


def test_a_machine_that_fits_no_sku_has_its_own_made_of_it(site: Path) -> None:
    """It is held, its inventory is kept; a node that has a SKU keeps that."""
    foreign = NodeState(NodeId("id-m0"), "m0", bmc="192.0.2.1")
    services = DiscoverServices(FakeBmcs({"m0": FakeBmc(replace(LARGE, serial=Serial("NEW")))}), address_of, dict)
    step = Discover(services, DiscoverPlan([H100_X8], workers=1))
    (found,) = step.run([foreign], IntentLog(NoJournal(), {}), Deadline.after(60))  # type: ignore[arg-type]
    assert Code.NO_SKU in {one.code for one in found.findings if one.verdict is Verdict.FAIL}
    described = new_event("node", "id-m0", Kind.NODE_DESCRIBED, {"name": "m0", "bmc": "192.0.2.1"})
    append(site, [described, *found.facts])
    run(site, "sku", "new", "--from", "m0", "--name", "own")
    assert yaml.safe_load((site / "skus" / "own.yml").read_text())["gpu_count"] == 8
    assert open_site(site).journal.state(foreign.id).sku == ""
    (again,) = step.run([replace(foreign, sku="old")], IntentLog(NoJournal(), {}), Deadline.after(60))  # type: ignore[arg-type]
    assert again.facts == ()


def test_calibrate_proposes_what_healthy_nodes_support(site: Path) -> None:
    """A file that the reader of limits accepts; a figure that is stricter already stays."""
    before = {file: file.read_bytes() for file in site.rglob("*.yml")}
    result = run(site, "sku", "calibrate", "dell-xe9680-h100", "-o", "json")
    document = json.loads(result.stdout)
    by_name = {one["name"]: one for one in document["figures"]}
    bf16 = by_name["gpu_gemm_bf16_min"]
    assert (bf16["nodes"], bf16["values"], bf16["worst"]) == (10, 80, 700)
    assert bf16["now"] < bf16["proposed"] < 700
    assert by_name["gpu_gemm_fp8_min"]["why"] == "the journal has no figure of it"
    limits = parse_limits(document["text"], where="calibrated.yml")
    assert limits["gpu_gemm_bf16_min"].value == bf16["proposed"]
    assert {file: file.read_bytes() for file in site.rglob("*.yml")} == before


def test_calibrate_takes_nodes_that_lack_a_figure_alone(site: Path) -> None:
    """Else an open limit would keep every node from gold, and nothing could ever propose it."""
    journal = open_site(site).journal
    for number in range(8):
        name = f"m{number}"
        identified(journal, name, f"S-{name}", "cabled")
        data = {"inventory": inventory_to_data(replace(LARGE, serial=Serial(f"S-{name}")))}
        journal.append([new_event("node", f"id-{name}", Kind.NODE_IDENTIFIED, data | SOLD)])
        ok = replace(OPEN, measured=Quantity(1.5 + number / 100, "s"))
        journal.append(stopped(name, ok, *([FAILED] if number == 7 else [])))
    journal.close()
    document = json.loads(run(site, "sku", "calibrate", "dell-xe9680-h100", "-o", "json").stdout)
    by_name = {one["name"]: one for one in document["figures"]}
    assert (by_name["zpool_write_max"]["nodes"], by_name["zpool_write_max"]["worst"]) == (7, 1.56)
    assert by_name["zpool_write_max"]["why"] == "7 healthy nodes measured it; 8 are needed"
    assert document["nodes"] == 17
