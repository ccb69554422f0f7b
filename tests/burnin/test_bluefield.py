"""bluefield: mode, firmware and PCIe link of BlueField cards.

Rows of mlxconfig as NVIDIA's page "BlueField Modes of Operation" and the scripts and notes of sites show them: with and
without `-e`; of a BlueField-2 in separated mode; of a card whose change waits for the power cycle.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import BlueFields
from clusterctl.formats.infiniband.bluefields import parse_bluefields
from clusterctl_burnin.node.processes import NOT_FOUND, Result
from clusterctl_burnin.node.programs import bluefields
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, healthy_text, readings

HEAD = "Configurations:      Default     Current     Next Boot"
MODEL = "        INTERNAL_CPU_MODEL    EMBEDDED_CPU(1)   EMBEDDED_CPU(1)   EMBEDDED_CPU(1)"
ANY = BlueFields(count=1)


def engine(default: str, now: str, later: str) -> str:
    return f"*       INTERNAL_CPU_OFFLOAD_ENGINE    {default}    {now}   {later}"


NIC = (HEAD, MODEL, engine("ENABLED(0)", "DISABLED(1)", "DISABLED(1)"))
DPU = (HEAD, MODEL, engine("ENABLED(0)", "ENABLED(0)", "ENABLED(0)"))
CHANGED = (HEAD, MODEL, engine("ENABLED(0)", "ENABLED(0)", "DISABLED(1)"))
WILL_CHANGE = (HEAD, MODEL, engine("ENABLED(0)", "DISABLED(1)", "ENABLED(0)"))
SEPARATED = (HEAD, MODEL.replace("EMBEDDED_CPU(1)", "SEPARATED_HOST(0)"), NIC[2])
NEXT_ONLY = ("Configurations:    Next Boot", "  INTERNAL_CPU_OFFLOAD_ENGINE   DISABLED(1)")


def card(**changed: Any) -> dict[str, Any]:
    healthy: dict[str, Any] = json.loads(healthy_text("bluefields"))["cards"][0]
    return healthy | changed


def found(*cards: dict[str, Any], wanted: BlueFields | None = None) -> list[Finding]:
    node = expected()
    if wanted is not None:
        node = replace(node, sku=replace(node.sku, bluefields=wanted))
    document = json.dumps({"cards": cards})
    return list(CHECKS["bluefield"].findings(readings(bluefields=lambda _: document), node))


def verdicts(*cards: dict[str, Any], wanted: BlueFields | None = None) -> list[tuple[Verdict, Code | None]]:
    return [(finding.verdict, finding.code) for finding in found(*cards, wanted=wanted)]


@pytest.mark.parametrize(
    ("rows", "now", "later"),
    [
        (NIC, "nic", "nic"),
        (DPU, "dpu", "dpu"),
        (CHANGED, "dpu", "nic"),
        (SEPARATED, "separated", "separated"),
        ((HEAD, NIC[2]), "nic", "nic"),
        (NEXT_ONLY, None, "nic"),
        ((HEAD, MODEL), None, None),
        ((HEAD, MODEL, "  INTERNAL_CPU_OFFLOAD_ENGINE   %s   %s   %s"), None, None),
        ((MODEL, NIC[2]), None, None),
        ((), None, None),
    ],
)
def test_the_mode_by_its_settings(rows: tuple[str, ...], now: str | None, later: str | None) -> None:
    (one,) = parse_bluefields(json.dumps({"cards": [card(settings=rows)]}))
    assert (one.mode, one.next_mode) == (now, later)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, None),
        ({"firmware": "32.44.1036"}, None),
        ({"settings": DPU}, Code.BLUEFIELD_MODE),
        ({"settings": CHANGED}, Code.BLUEFIELD_MODE),
        ({"settings": WILL_CHANGE}, Code.BLUEFIELD_MODE),
        ({"settings": SEPARATED}, Code.BLUEFIELD_MODE),
        ({"firmware": "32.41.1000"}, Code.BLUEFIELD_FIRMWARE),
        ({"speed": "16.0 GT/s PCIe"}, Code.PCIE_LINK_POOR),
        ({"width": "8"}, Code.PCIE_LINK_POOR),
    ],
)
def test_a_card_unlike_its_sku_fails(changed: dict[str, Any], code: Code | None) -> None:
    assert verdicts(card(**changed)) == ([(Verdict.PASS, Code.PASSED)] if code is None else [(Verdict.FAIL, code)])


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": [], "error": "-E- Failed to open the device"},
        {"settings": NEXT_ONLY},
        {"firmware": None},
        {"firmware": "unknown"},
        {"speed": "Unknown", "width": "0"},
        {"max_speed": None},
    ],
)
def test_what_is_not_known_is_inconclusive(changed: dict[str, Any]) -> None:
    """A card that refuses its settings (zero-trust mode), or whose driver is not loaded, is not healthy by that."""
    assert [verdict for verdict, _ in verdicts(card(**changed))] == [Verdict.INCONCLUSIVE]


def test_the_number_of_cards() -> None:
    assert verdicts() == [(Verdict.FAIL, Code.BLUEFIELD_COUNT)]
    two = (card(), card(address="0000:9a:00.0", settings=DPU))
    assert verdicts(*two) == [(Verdict.FAIL, Code.BLUEFIELD_COUNT), (Verdict.FAIL, Code.BLUEFIELD_MODE)]


def test_what_the_sku_leaves_out_is_not_judged_but_for_the_link() -> None:
    assert verdicts(card(settings=DPU, firmware=None), wanted=ANY) == [(Verdict.PASS, Code.PASSED)]
    assert verdicts(card(width="8"), wanted=ANY) == [(Verdict.FAIL, Code.PCIE_LINK_POOR)]
    assert verdicts(card(width="8"), wanted=replace(ANY, link_width=8)) == [(Verdict.PASS, Code.PASSED)]


def test_the_remedy_switches_only_what_the_next_boot_does_not_switch() -> None:
    (wrong,) = found(card(settings=DPU))
    (waits,) = found(card(settings=CHANGED))
    assert "INTERNAL_CPU_OFFLOAD_ENGINE=1" in wrong.remedy
    assert waits.remedy.startswith("power the machine off and on")
    assert waits.measured == "dpu, nic after the next power cycle"


def function(devices: Path, address: str, device: str) -> None:
    folder = devices / address
    (folder / "infiniband" / "mlx5_0").mkdir(parents=True)
    files = {"vendor": "0x15b3", "device": device, "current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16"}
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")
    (folder / "infiniband" / "mlx5_0" / "fw_ver").write_text("32.43.1014\n")


def answers(**tools: Result) -> Callable[..., Result]:
    def ask(tool: str, *_: str, seconds: float) -> Result:
        return tools.get(tool, (NOT_FOUND, "", f"{tool}: No such file"))

    return ask


def test_the_program_reads_one_function_of_each_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mstconfig is asked where NVIDIA's mlxconfig is not installed; a ConnectX-7 is no BlueField."""
    for address, device in (("0000:29:00.0", "0xa2dc"), ("0000:29:00.1", "0xa2dc"), ("0000:18:00.0", "0x1021")):
        function(tmp_path, address, device)
    printed = "\n".join(("Device #1:", *NIC, "        SRIOV_EN    True(1)   True(1)   True(1)"))
    assert bluefields.main(tmp_path, answers(mstconfig=(0, printed, ""))) == 0
    (one,) = parse_bluefields(capsys.readouterr().out)
    assert (one.address, one.model, one.firmware, one.mode) == ("0000:29:00.0", "BlueField-3", "32.43.1014", "nic")
    assert str(one.link) == "32 GT/s ×16"


def test_the_program_keeps_the_error_of_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function(tmp_path, "0000:29:00.0", "0xa2dc")
    refused = (3, "", "-E- Failed to open the device\n")
    bluefields.main(tmp_path, answers(mlxconfig=refused))
    bluefields.main(tmp_path, answers())
    first, second = capsys.readouterr().out.replace("}{", "}\n{").splitlines()
    assert parse_bluefields(first)[0].error == "-E- Failed to open the device"
    assert parse_bluefields(second)[0].error.startswith("mstconfig: No such file")


def test_a_host_without_pci_is_not_measured(tmp_path: Path) -> None:
    assert bluefields.main(tmp_path / "none", answers()) == 1
