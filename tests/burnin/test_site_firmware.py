"""site_firmware: the list of the limits decides; and the list itself is read strictly."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.infiniband.adapters import parse_adapter_boards
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.limits.reading import parse_limits, shipped_limits
from clusterctl_burnin.node.programs import adapter_boards
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import Edit, expected, readings

BASE = "version: 1\nname: site\nhardware: ours\nextends: h100-sxm-ndr400\n"
HCA = """firmware:
  hca:
    others: warn
    wanted:
      MT_0000000838: {versions: ["28.39.1002", "28.43.1014"], otherwise: fail, source: us}
"""
GPU = """firmware:
  gpu_vbios:
    others: fail
    wanted:
      NVIDIA H100 80GB HBM3: {versions: [96.00.74.00.0D], otherwise: warn, source: us}
"""


def limits(more: str) -> Limits:
    return parse_limits(BASE + more, where="limits/site.yml")


def node(more: str) -> Expected:
    return dataclasses.replace(expected(), limits=limits(more))


def found(more: str, **broken: Edit) -> tuple[Finding, ...]:
    return CHECKS["site_firmware"].findings(readings(**broken), node(more))


def boards(*psids: str | None) -> Edit:
    rows = [{"name": f"mlx5_{at}", "psid": psid} for at, psid in enumerate(psids)]
    return lambda _: json.dumps({"adapters": rows})


def test_any_listed_version_is_right() -> None:
    """Also where two are, as in the middle of an update."""
    for more in (HCA, GPU):
        assert [finding.verdict for finding in found(more)] == [Verdict.PASS]
    mixed = found(HCA, ibstat=lambda text: text.replace("28.39.1002", "28.43.1014", 1))
    assert [finding.verdict for finding in mixed] == [Verdict.PASS]


def test_without_a_list_nothing_is_passed() -> None:
    """NOT_APPLICABLE, with what is missing."""
    (finding,) = found("")
    assert (finding.verdict, finding.cause) == (Verdict.NOT_APPLICABLE, "the limits name no firmware")


def test_another_version_is_judged_by_the_list() -> None:
    """A failure here, a warning there; each names the part."""
    (hca,) = found(HCA, ibstat=lambda text: text.replace("28.39.1002", "28.45.1200", 1))
    assert (hca.verdict, hca.subject, hca.measured) == (Verdict.FAIL, "mlx5_0", "28.45.1200")
    (gpu,) = found(GPU, nvidia_smi=lambda text: text.replace("96.00.74.00.0D", "96.00.30.00.01", 1))
    assert (gpu.verdict, gpu.subject, gpu.measured) == (Verdict.WARN, "gpu 0", "96.00.30.00.01")


def test_a_part_that_the_list_does_not_know_is_reported() -> None:
    """A board of another make, and a GPU of another product."""
    (hca,) = found(HCA, adapter_boards=boards("MT_0000000838", "DEL0000000036"))
    assert (hca.verdict, hca.subject, hca.measured) == (Verdict.WARN, "mlx5_1", "DEL0000000036")
    (gpu,) = found(GPU, nvidia_smi=lambda text: text.replace("NVIDIA H100 80GB HBM3", "NVIDIA H200", 1))
    assert (gpu.verdict, gpu.subject) == (Verdict.FAIL, "gpu 0")


@pytest.mark.parametrize("psids", [("MT_0000000838", None), ("MT_0000000838",)])
def test_an_unknown_psid_is_not_right(psids: tuple[str | None, ...]) -> None:
    """The driver does not report it, or the adapter has none."""
    (finding,) = found(HCA, adapter_boards=boards(*psids))
    assert (finding.verdict, finding.subject) == (Verdict.INCONCLUSIVE, "mlx5_1")


def test_the_other_checks_finding_about_the_part_is_the_root() -> None:
    """Firmware that is too old for any site is one finding, not two."""
    broken = readings(ibstat=lambda text: text.replace("28.39.1002", "28.35.2000", 1))
    names = ("hca_firmware", "site_firmware")
    first, second = link_roots(
        f for name in names for f in CHECKS[name].findings(broken, node(HCA)) if f.subject != "node"
    )
    assert (first.check, second.check, second.root) == (*names, first.key)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("otherwise: fail", "otherwise: ignore", r"limits/site\.yml:9 firmware\.hca\.wanted\.MT_0000000838\.otherwise"),
        ("    others: warn\n", "", r"firmware\.hca\.others: this field is required"),
        (", source: us", "", r"\.source: this field is required"),
        ('["28.39.1002", "28.43.1014"]', "[]", r"limits/site\.yml:9 .*\.versions"),
        ('["28.39.1002", "28.43.1014"]', "[28.39]", r"limits/site\.yml:9 .*\.versions\.0"),
        ("  hca:", "  nic:", r"limits/site\.yml:6 firmware\.nic: there is no such field"),
    ],
)
def test_a_wrong_list_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    """File, line and field."""
    assert old in HCA
    with pytest.raises(UsageError, match=message):
        limits(HCA.replace(old, new))


def test_a_list_is_a_part_of_the_limits_digest() -> None:
    """A verdict names the list that it was reached by; files without one keep the digest that they had."""
    assert limits(HCA).digest != limits("").digest != limits(GPU).digest
    before = text_of("limits/h100-sxm-ndr400.yml")
    assert shipped_limits("h100-sxm-ndr400").digest == parse_limits(before, where="x").digest
    assert not limits("").firmware


def test_the_driver_reports_each_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the mlx5 driver lays it out; an adapter of another driver has no such file."""
    for name, psid in (("mlx5_0", "MT_0000000838\n"), ("irdma0", "")):
        (tmp_path / name).mkdir()
        if psid:
            (tmp_path / name / "board_id").write_text(psid)
    adapter_boards.main(tmp_path)
    assert parse_adapter_boards(capsys.readouterr().out) == {"irdma0": None, "mlx5_0": "MT_0000000838"}
    adapter_boards.main(tmp_path / "none")
    assert parse_adapter_boards(capsys.readouterr().out) == {}
