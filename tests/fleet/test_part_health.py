"""Parts without reported health: unmeasured, unless the SKU has that its BMC reports none; never failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.hardware.matching import match
from clusterctl.fleet.node import Psu, Serial
from clusterctl.formats.redfish.system import well
from clusterctl.formats.redfish.tree import Resource
from tests.fleet.skus import H100_X8
from tests.fleet.test_match import SKU, WHOLE

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "part_health.yml").read_text())


def supply(number: int, health: str | None) -> Psu:
    """A power supply as it is read from a BMC that writes `health`."""
    return Psu(f"PS{number}", Serial(f"P{number}"), well(Resource("/redfish/v1/x", {"Status": {"Health": health}})))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_case_has_its_verdict(case: dict[str, Any]) -> None:
    """Every row of the table; its source has what the BMC reports."""
    reported = case["sku"]
    sku = replace(SKU, psus=reported.get("psus"), unreported=frozenset(reported.get("unreported", ())))
    listed = case.get("psus")
    psus = tuple(supply(at, health) for at, health in enumerate(listed, 1)) if listed else None
    machine = replace(WHOLE, psus=psus, health=case.get("health", "OK"))
    if "temperatures" in case:
        machine = replace(machine, temperatures=case["temperatures"])
    found = match(machine, sku)
    for check, expected in case["expect"].items():
        verdict, _, code = expected.partition(" ")
        (worst,) = {one.verdict for one in found if one.check == check}
        assert worst.value == verdict
        assert not code or code in {one.code.value for one in found if one.check == check}


def test_a_sku_without_the_field_asks_for_nothing() -> None:
    """The default of both fields is what no SKU has to write."""
    assert (H100_X8.psus, H100_X8.unreported) == (None, frozenset())
