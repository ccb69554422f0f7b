"""fan_speed: fans that stand, that the BMC calls critical, and that are slower than their peers; empty sockets are normal."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.host.ipmi_fans import FanState, parse_fans
from clusterctl_burnin.checks.fan_speed import FAN_SPEED
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, healthy_text, readings, result

HEALTHY = healthy_text("fans")
DELL = """\
Fan1A RPM        | 30h | ok  |  7.1 | 7560 RPM
Fan1B RPM        | 31h | ok  |  7.1 | 7080 RPM
Fan2A RPM        | 32h | ok  |  7.1 | 7320 RPM
Fan2B RPM        | 33h | ok  |  7.1 | 7080 RPM
Fan Redundancy   | 75h | ok  |  7.1 | Fully Redundant
"""
"""Written by us: the figures are those of a PowerEdge R320 (github.com/ateodorescu/home-assistant-ipmi/issues/52), which
has `0 RPM` and `cr` for two broken fans.
"""
HPE = """\
Fan 1            | 25h | ok  | 29.1 | 29.79 percent
Fan 1 Presence   | 26h | ok  | 29.1 | Device Present
Fan 2            | 27h | ok  | 29.2 | 29.79 percent
Fans             | 2Ah | ok  | 30.1 | Fully Redundant
"""
"""Written by us in the form of ProLiant servers, whose fans have a duty cycle and no speed."""
OPENBMC = """\
FAN3_1           | 25h | ok  | 29.13 | 5100 RPM
FAN3_2           | 28h | ok  | 29.16 | 4700 RPM
FAN4_1           | 2Bh | ns  | 29.19 | No Reading
PSU0_fan1        | F5h | ns  | 29.60 | No Reading
"""
"""Written by us after a list on OpenBMC's mailing list (lists.ozlabs.org/pipermail/openbmc)."""


RECORDED = (
    (
        "pass",
        "a test of a collector of sensors, from a Dell server",
        """\
Fan1             | 30h | ok  | 29.1 | 5400 RPM
Fan2             | 31h | ok  | 29.2 | 5520 RPM
Fan3             | 32h | ns  | 29.3 | No Reading
""",
    ),
    (
        "pass",
        "notes on IPMI with Nagios: an ASRock server, its fans below the system board",
        """\
CPU1_FAN1        | 60h | ok  |  7.0 | 5000 RPM
FRNT_FAN1        | 62h | ok  |  7.0 | 5200 RPM
FRNT_FAN2        | 63h | ok  |  7.0 | 5000 RPM
REAR_FAN1        | 66h | ns  |  7.0 | No Reading
""",
    ),
    (
        "pass",
        "the same notes: a small Supermicro server",
        """\
FAN1             | 41h | ok  | 29.1 | 1300 RPM
FAN2             | 42h | ok  | 29.2 | 1300 RPM
FAN3             | 43h | ns  | 29.3 | No Reading
FANA             | 44h | ns  | 29.4 | No Reading
""",
    ),
    (
        "pass",
        "SONiC, a platform with two rotors a fan and a sensor of presence",
        """\
Fan2_Status      | 07h | ok  | 29.2 | Present
Fan2_Front       | 0Eh | ok  | 29.2 | 12000 RPM
Fan2_Rear        | 46h | ok  | 29.2 | 14700 RPM
PSU2_Fan         | 3Dh | ok  | 10.2 | 16000 RPM
""",
    ),
    (
        "pass",
        "a test of VMware's map of servers: `ipmitool sdr type Fan` of a Supermicro server",
        """\
FAN1             | 41h | ok  | 29.1 | 5800 RPM
FAN2             | 42h | ok  | 29.2 | 5700 RPM
RSC FAN          | 49h | ns  | 29.9 | No Reading
""",
    ),
    (
        "pass",
        "a page on IPMI, PowerEdge R730",
        """\
Fan1             | 30h | ok  | 29.1 | 3600 RPM
Fan2             | 31h | ok  | 29.2 | 3480 RPM
""",
    ),
    (
        "fail",
        "OpenBMC of Nuvoton's BUV, whose fans stand while the BMC calls them ok",
        """\
Fan1             | 11h | ok  | 29.1 | 0 RPM
Fan2             | 12h | ok  | 29.2 | 0 RPM
Fan3             | 13h | ok  | 29.3 | 0 RPM
Fan4             | 14h | ok  | 29.4 | 0 RPM
""",
    ),
)
"""Lists of public repositories, with the verdict that each must have, written before the check read them."""


@pytest.mark.parametrize(("verdict", "source", "text"), RECORDED, ids=[source for _, source, _ in RECORDED])
def test_recorded_fans_have_the_verdicts_of_their_table(verdict: str, source: str, text: str) -> None:
    """Of servers by several makers; one of them has a sensor of presence and one speed for each rotor."""
    assert {finding.verdict.value for finding in found(text)} == {verdict}, source


def found(text: str) -> tuple[Finding, ...]:
    return CHECKS["fan_speed"].findings(readings(fans=lambda _: text), expected())


@pytest.mark.parametrize("text", [HEALTHY, DELL, HPE, OPENBMC], ids=["supermicro", "dell", "hpe", "openbmc"])
def test_fans_that_turn_pass(text: str) -> None:
    """With empty sockets, redundancy lines, sensors that report nothing, and units other than RPM."""
    assert [finding.verdict for finding in found(text)] == [Verdict.PASS]


@pytest.mark.parametrize(
    ("old", "new", "verdict", "subject", "cause"),
    [
        ("ok  | 29.1 | 5800 RPM", "cr  | 29.1 | 0 RPM", Verdict.FAIL, "FAN1", "does not turn"),
        ("ok  | 29.1 | 5800 RPM", "ok  | 29.1 | 0 RPM", Verdict.FAIL, "FAN1", "does not turn"),
        ("ok  | 29.1 | 5800 RPM", "lcr | 29.1 | 300 RPM", Verdict.FAIL, "FAN1", "reports FAN1 as critical"),
        ("ok  | 29.1 | 5800 RPM", "unr | 29.1 | 25500 RPM", Verdict.FAIL, "FAN1", "reports FAN1 as critical"),
        ("ok  | 29.1 | 5800 RPM", "ok  | 29.1 | 2200 RPM", Verdict.FAIL, "FAN1", "slower than the others"),
        ("ok  | 29.1 | 5800 RPM", "lnc | 29.1 | 4400 RPM", Verdict.WARN, "FAN1", "warns of FAN1"),
        ("Fully Redundant", "Redundancy Lost", Verdict.FAIL, "Fan Redundancy", "Fan Redundancy as critical"),
        ("Fully Redundant", "Redundancy Degraded", Verdict.WARN, "Fan Redundancy", "warns of Fan Redundancy"),
        ("| 29.13 |", "| 29.13 | State Asserted", Verdict.WARN, "PS1 1a Fan Fail", "warns of PS1 1a Fan Fail"),
    ],
)
def test_a_bad_fan(old: str, new: str, verdict: Verdict, subject: str, cause: str) -> None:
    """One finding, on the fan by the name that the BMC has for it."""
    assert old in HEALTHY
    (finding,) = found(HEALTHY.replace(old, new))
    assert (finding.verdict, finding.subject) == (verdict, subject)
    assert cause in finding.cause
    assert finding.remedy


def test_a_failed_fan_explains_the_lost_redundancy() -> None:
    """One part to replace is one finding."""
    broken = DELL.replace("ok  |  7.1 | 7080 RPM", "cr  |  7.1 | 0 RPM", 1).replace(
        "Fully Redundant", "Redundancy Lost"
    )
    assert [(finding.subject, finding.verdict) for finding in found(broken)] == [("Fan1B RPM", Verdict.FAIL)]


def test_without_a_reading_nothing_passes() -> None:
    """Sockets alone, and a BMC that cannot be reached from the node: with what to do about it."""
    (empty,) = found("FAN4             | 44h | ns  | 29.4 | No Reading\n")
    assert (empty.verdict, empty.cause) == (Verdict.INCONCLUSIVE, "the BMC reports the speed of no fan")
    complaint = "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"
    failed = readings(fans=result("fans", "", rc=1, stderr=complaint))
    (finding,) = CHECKS["fan_speed"].findings(failed, expected())
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "/dev/ipmi0" in finding.cause
    assert "ipmi_devintf" in finding.remedy


def test_fans_are_compared_with_their_like() -> None:
    """As shares of the node's median: warm air speeds up all fans of a node. Power supplies' fans are another kind."""
    text = HEALTHY + "".join(
        f"PSU{number} FAN         | 5{number}h | ok  | 10.{number} | 1200 RPM\n" for number in "123"
    )
    assert [finding.verdict for finding in found(text)] == [Verdict.PASS]
    reported = [one for one in samples("n", "p", readings(fans=lambda _: text)) if one.metric is FAN_SPEED]
    assert [(one.subject, round(one.value)) for one in reported] == [
        *(("PSU1 FAN", 100), ("PSU2 FAN", 100), ("PSU3 FAN", 100)),
        *(("FAN1", 102), ("FAN2", 100), ("FAN3", 86)),
    ]


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("Fan 1 | 25h | ok | 29.1 | Device Present, Transition to Degraded", FanState.DEGRADED),
        ("Fan 1 | 25h | ok | 29.1 | Transition to Critical from less severe", FanState.FAILED),
        ("Fan 1 | 25h | ok | 29.1 | Device Absent", FanState.EMPTY),
        ("Fan 1 | 25h | ns | 29.1 | Logical FRU @35h", FanState.EMPTY),
        ("Fan 1 | 25h | nr | 29.1 | 100 RPM", FanState.FAILED),
    ],
)
def test_states(line: str, state: FanState) -> None:
    """Of sensors with and without a figure; the worst of several counts."""
    assert [sensor.state for sensor in parse_fans(line)] == [state]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "Fan 1 | 25h | ok\n",
        "FAN1 | 41h | xx | 29.1 | 5800 RPM\n",
        "FAN1 | 41h | ok | 29.1 | 5800 furlongs\n",
        "FAN1 | 41h | ok | 29.1 | Transition to Elsewhere\n",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    """No fan is taken for healthy by default."""
    with pytest.raises(ParseError):
        parse_fans(text)
