"""transceivers and the program that it reads: each module by its maker's own ranges, and silence is no health."""

from __future__ import annotations

import json

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.transceivers import parse_transceivers
from clusterctl_burnin.node.programs import transceivers
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import expected, readings, result

RX, TX, HEAT = "Rx Power Current [dBm]", "Tx Power Current [dBm]", "Temperature [C]"


def found(**port: object) -> tuple[Finding, ...]:
    """The first port changed."""

    def edit(text: str) -> str:
        document = json.loads(text)
        document["ports"][0].update(port)
        return json.dumps(document)

    return CHECKS["transceivers"].findings(readings(transceivers=edit), expected())


def module(**fields: str) -> dict[str, object]:
    plain = {"Cable Type": "Optical Module (separated)", RX: "0,2 [-8..6]", TX: "2,2 [-6..6]", HEAT: "48 [-5..75]"}
    plain |= {"Vendor Name": "NVIDIA", "Vendor Part Number": "MMA4Z00-NS", "Vendor Serial Number": "MT1", **fields}
    return {"result": {"output": {"Module Info": plain}}}


@pytest.mark.parametrize(
    ("fields", "cause", "measured", "remedy"),
    [
        ({RX: "0,2,-9,0 [-8..6]"}, "receives light that is too weak or too strong on lane 3", "-9 dBm", "clean"),
        ({RX: "-40,-40 [-8..6]"}, "on lane 1, 2", "-40 dBm, -40 dBm", "clean"),
        ({TX: "2, -7.25 [-6..6]"}, "sends light", "-7.25 dBm", "replace it"),
        ({HEAT: "76 [-5..75]"}, "is too hot", "76 °C", "air passes"),
    ],
)
def test_a_bad_module_is_reported_by_port_and_serial(
    fields: dict[str, str], cause: str, measured: str, remedy: str
) -> None:
    """With the value and the range that its maker allows."""
    (finding,) = found(answer=module(**fields))
    assert (finding.verdict, finding.subject, str(finding.measured)) == (Verdict.FAIL, "mlx5_0", measured)
    assert "NVIDIA MMA4Z00-NS (serial MT1)" in finding.cause
    assert cause in finding.cause
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("port", "cause"),
    [
        ({"code": 1, "answer": None, "output": "-E- Failed to open device"}, "-E- Failed to open device"),
        ({"answer": module(**{"Vendor Part Number": "N/A"})}, "mlx5_0 reports no module"),
        ({"answer": module(**{RX: "N/A"})}, "does not report its light"),
        ({"answer": module(**{HEAT: "warm"})}, "transceivers mlx5_0 temperature: 'warm' is not a value with its range"),
        ({"answer": {"result": {"output": {}}}}, "transceivers result.output.Module Info"),
    ],
)
def test_what_a_module_does_not_report_is_not_healthy(port: dict[str, object], cause: str) -> None:
    """INCONCLUSIVE, and why."""
    (finding,) = found(**port)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert cause in finding.cause


def test_a_port_that_was_not_asked_is_missed() -> None:
    """One module of two is half a measurement."""
    (finding,) = found(name="mlx5_9")
    assert (finding.verdict, "1 of 2 adapters" in finding.cause) == (Verdict.INCONCLUSIVE, True)


def test_dark_and_dirty_ports_have_one_root() -> None:
    """Weak light explains the errors of its port; a port without a cable explains that its module reports nothing."""
    weak, errors = (
        Finding(check="transceivers", verdict=Verdict.FAIL, code=Code.TRANSCEIVER_LIGHT_RECEIVED, subject="mlx5_1"),
        Finding(check="hca_errors", verdict=Verdict.FAIL, code=Code.HCA_ERRORS, subject="mlx5_1"),
    )
    assert [finding.root for finding in link_roots((errors, weak))] == [weak.key, ""]
    down, none = (
        Finding(check="hca_link", verdict=Verdict.FAIL, code=Code.HCA_PORT_DOWN, subject="mlx5_1"),
        Finding(check="transceivers", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED, subject="mlx5_1"),
    )
    assert [finding.root for finding in link_roots((down, none))] == ["", down.key]


def ask(*argv: str) -> tuple[int, str, str]:
    if argv == ("ibstat", "-l"):
        return 0, "mlx5_0\nmlx5_1\n", ""
    assert (argv[0], argv[1], argv[3:]) == ("mstlink", "-d", ("-m", "--json"))
    return (
        (0, json.dumps(module()), "") if argv[2] == "mlx5_0" else (1, "", "\x1b[31m -E- Failed to open device\n\x1b[0m")
    )


def test_the_program_asks_each_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    """One that fails keeps its words without their colour (mstlink 4.21 has them in colour), and the others answer."""
    assert transceivers.main(ask, "mstlink") == 0
    first, second = parse_transceivers(capsys.readouterr().out)
    assert (first.port, first.part, first.optical) == ("mlx5_0", "MMA4Z00-NS", True)
    assert (second.part, second.output) == ("", "-E- Failed to open device")


def test_a_missing_tool_is_reported_with_the_role_that_installs_it() -> None:
    """Not "run transceivers on the node": there is no such program."""
    complaint = "neither mlxlink (MFT) nor mstlink (package mstflint) is installed\n"
    missing = result("transceivers", "", rc=127, stderr=complaint)
    (finding,) = CHECKS["transceivers"].findings(readings(transceivers=missing), expected())
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "neither mlxlink" in finding.cause
    assert "role ib_tools" in finding.remedy


def test_without_a_tool_the_finding_names_the_missing_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """Both names, and where they come from."""
    assert transceivers.main(ask, None) == 127
    assert "mlxlink (MFT) nor mstlink (package mstflint)" in capsys.readouterr().err
