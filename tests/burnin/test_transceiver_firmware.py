"""transceiver_firmware: versions of modules of one kind are compared, and held against the site's list."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.limits.firmware import NOTHING, AllowedVersions, FirmwareRequirements, PartRequirements
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import LIMITS, expected, healthy_text, readings

PART = "MMA4Z00-NS"
LIST = FirmwareRequirements(
    transceiver=PartRequirements(
        others="warn", wanted={PART: AllowedVersions(versions=("47.171.1012",), otherwise="fail", source="test")}
    )
)


def modules(*versions: str | None, cable: str = "Optical Module (separated)", part: str = PART) -> str:
    """The document of two ports; None: the module does not have the field, as mlxlink before MFT 4.18 prints it.

    The field's name and place are those of a published document of an OSFP module in a ConnectX-8 ("FW Version": "80.1.0").
    """
    document = json.loads(healthy_text("transceivers"))
    for port, version in zip(document["ports"], versions, strict=True):
        info = port["answer"]["result"]["output"]["Module Info"]
        info |= {"Cable Type": cable, "Vendor Part Number": f"{part}          "}
        info.pop("FW Version", None)
        if version is not None:
            info["FW Version"] = version
    return json.dumps(document)


def judged(text: str, firmware: FirmwareRequirements = NOTHING) -> tuple[Finding, ...]:
    node = expected(limits=replace(LIMITS, firmware=firmware))
    return CHECKS["transceiver_firmware"].findings(readings(transceivers=lambda _: text), node)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (modules("47.171.1012", "47.171.1012"), Verdict.PASS),
        (modules("47.171.1012", "47.160.0512"), Verdict.WARN),
        (modules("47.171.1012", None), Verdict.WARN),
        (modules(None, None), Verdict.NOT_APPLICABLE),
        (modules("N/A", "N/A", cable="Passive copper cable"), Verdict.NOT_APPLICABLE),
    ],
)
def test_versions_are_compared(text: str, verdict: Verdict) -> None:
    """One version passes; two warn, also where one module reports none; without any there is nothing to compare."""
    (found,) = judged(text)
    assert found.verdict is verdict
    assert (found.code is Code.TRANSCEIVER_FIRMWARE_DIFFERS) == (verdict is Verdict.WARN)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (modules("47.171.1012", "47.171.1012"), {Code.PASSED}),
        (modules("47.160.0512", "47.160.0512"), {Code.FIRMWARE_NOT_LISTED}),
        (modules(None, None), {Code.FIRMWARE_NOT_LISTED}),
        (modules("1.0", "1.0", part="OTHER-1"), {Code.PART_NOT_LISTED}),
    ],
)
def test_versions_are_held_against_the_list(text: str, codes: set[Code]) -> None:
    """A version that is not listed fails on its port, and so does one that is not reported."""
    found = judged(text, LIST)
    assert {one.code for one in found} == codes


def test_a_port_without_a_module_is_not_measured() -> None:
    """An empty port has no version."""
    document = json.loads(modules("47.171.1012", "47.171.1012"))
    document["ports"][1]["answer"]["result"]["output"]["Module Info"]["Vendor Part Number"] = "N/A"
    assert {one.verdict for one in judged(json.dumps(document))} == {Verdict.INCONCLUSIVE}
