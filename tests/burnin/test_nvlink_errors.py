"""nvlink_errors: counters are judged by what is added, in the names of Hopper's drivers and of Blackwell's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.nvidia.nvlink import NvLinkError, parse_nvlink_errors
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import LIMITS, Edit, expected, healthy_text, readings

MARK = "=== read again after "
HOPPER = healthy_text("nvlink_errors").partition(MARK)[0]
BLACKWELL_LINK = """\
\t Link {0}: Tx packets: 35896723
\t Link {0}: Tx bytes: 4594780544
\t Link {0}: Rx packets: 35896723
\t Link {0}: Rx bytes: 4594780544
\t Link {0}: Malformed packet Errors: 0
\t Link {0}: Buffer overrun Errors: 0
\t Link {0}: Rx Errors: 0
\t Link {0}: Rx remote Errors: 0
\t Link {0}: Rx General Errors: 0
\t Link {0}: Local link integrity Errors: 0
\t Link {0}: Tx discards: 0
\t Link {0}: Link recovery successful events: 0
\t Link {0}: Link recovery failed events: 0
\t Link {0}: Total link recovery events: 0
\t Link {0}: Effective Errors: 0
\t Link {0}: Effective BER: 15e-255
\t Link {0}: Symbol Errors: 0
\t Link {0}: Symbol BER: 15e-255
\t Link {0}: FEC Errors - 0: 17941761
\t Link {0}: FEC Errors - 1: 217
\t Link {0}: Raw BER Lane 0: 5e-12
\t Link {0}: Raw Errors Lane 0: 217
\t Link {0}: PLR Xmit Blocks: 1234567890
"""
"""Written by us: the names and orders of magnitude that driver 595 prints on B300, as operators quote them in public
(Total link recovery events and FEC bin 0 in the billions on a healthy link; github.com/NVIDIA/dcgm-exporter/issues/581 has
the same counters on GB200).
"""
BLACKWELL = "".join(
    f"GPU {gpu}: NVIDIA B300 SXM6 AC (UUID: GPU-00000001-0000-4000-8000-{gpu:012x})\n"
    + "\n".join(BLACKWELL_LINK.format(link) for link in range(18))
    + "\n"
    for gpu in range(2)
)


def twice(first: str, second: str, seconds: float = 5.0) -> Edit:
    return lambda _: f"{first}{MARK}{seconds:.3f} s ===\n{second}"


def count(text: str, name: str, number: int, link: int = 3) -> str:
    """The first GPU's counter of a link, set."""
    old = f"Link {link}: {name}: 0\n"
    assert old in text
    return text.replace(old, f"Link {link}: {name}: {number}\n", 1)


def found(first: str, second: str, seconds: float = 5.0) -> tuple[Finding, ...]:
    return CHECKS["nvlink_errors"].findings(readings(nvlink_errors=twice(first, second, seconds)), expected())


@pytest.mark.parametrize("text", [HOPPER, BLACKWELL], ids=["hopper", "blackwell"])
def test_healthy_links_pass(text: str) -> None:
    """FEC corrections, raw errors and traffic are no errors, also while they grow."""
    grown = text.replace("FEC Errors - 1: 217", "FEC Errors - 1: 999").replace("Lane 0: 217", "Lane 0: 999")
    assert [finding.verdict for finding in found(text, grown)] == [Verdict.PASS]


@pytest.mark.parametrize(
    ("text", "name", "values", "verdict", "cause"),
    [
        (HOPPER, "Replay Errors", (0, 1), Verdict.FAIL, "NVLinks 3 of the GPU count errors: 1 Replay Errors"),
        (HOPPER, "Recovery Errors", (7, 8), Verdict.FAIL, "count errors: 1 Recovery Errors"),
        (HOPPER, "Replay Errors", (7, 7), Verdict.WARN, "since the driver was loaded: 7 Replay Errors"),
        (HOPPER, "CRC Errors", (0, 400), Verdict.WARN, "400 CRC Errors"),
        (HOPPER, "CRC Errors", (0, 900), Verdict.FAIL, "count CRC errors"),
        (BLACKWELL, "Link recovery failed events", (0, 1), Verdict.FAIL, "1 Link recovery failed events"),
        (BLACKWELL, "Effective Errors", (0, 2), Verdict.FAIL, "2 Effective Errors"),
        (BLACKWELL, "Tx discards", (0, 2), Verdict.FAIL, "2 Tx discards"),
        (BLACKWELL, "Link recovery successful events", (0, 2), Verdict.WARN, "2 Link recovery successful events"),
        (BLACKWELL, "Rx Errors", (5, 5), Verdict.WARN, "5 Rx Errors"),
        (HOPPER, "CRC Errors", (9, 3), Verdict.INCONCLUSIVE, "cleared the counters during"),
    ],
)
def test_a_counter(text: str, name: str, values: tuple[int, int], verdict: Verdict, cause: str) -> None:
    """The first and the second reading: one finding, on the GPU, with its serial and something to do."""
    (finding,) = found(*(count(text, name, value) for value in values))
    assert (finding.verdict, finding.subject, finding.serial) == (verdict, "gpu 0", "165000010000")
    assert cause in finding.cause
    assert finding.remedy


def test_links_without_counters_are_unmeasured() -> None:
    """A link that is down, all links down in the driver's words, a GPU less: the rest proves nothing."""
    down = HOPPER.replace(
        "\t Link 17: Replay Errors: 0\n\t Link 17: Recovery Errors: 0\n\t Link 17: CRC Errors: 0\n", "", 1
    )
    first, second = HOPPER.index("\t Link 0"), HOPPER.index("GPU 1")
    inactive = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    for text, cause in (
        (down, "17 of 18 NVLinks"),
        (HOPPER[:first] + inactive + HOPPER[second:], "0 of 18 NVLinks"),
        (HOPPER[:second], "1 of 2 GPUs"),
    ):
        (finding,) = found(text, text)
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert cause in finding.cause
    (finding,) = found(down, HOPPER)
    assert "links changed while they were watched" in finding.cause


def test_only_the_sku_excuses_from_nvlink() -> None:
    """Its limits name no NVLink: not applicable, whatever nvidia-smi prints."""
    none = replace(LIMITS, limits={**LIMITS.limits, "nvlink_count": replace(LIMITS["nvlink_count"], value=0)})
    (finding,) = CHECKS["nvlink_errors"].findings(readings(nvlink_errors=lambda _: ""), expected(limits=none))
    assert finding.verdict is Verdict.NOT_APPLICABLE


def test_the_counters_of_both_generations() -> None:
    """Every name that is judged is read, of each link."""
    (hopper, _), (blackwell, _) = parse_nvlink_errors(HOPPER), parse_nvlink_errors(BLACKWELL)
    read = {error for gpu in (hopper, blackwell) for error in gpu.links[17]}
    assert (len(hopper.links), len(blackwell.links), read) == (18, 18, set(NvLinkError))
    mixed = parse_nvlink_errors("GPU 0: NVIDIA A100 (UUID: GPU-0a)\n\t Link 0: CRC Errors: 2\n\t Link 1: <inactive>\n")
    assert mixed[0].links == {0: {NvLinkError.CRC: 2}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found\n",
        "\t Link 0: CRC Errors: 2\n",
        "GPU 0: NVIDIA H100 (UUID: GPU-0a)\nwhat is this\n",
        "GPU 0: NVIDIA H100 (UUID: GPU-0a)\n\t Link 0: CRC Errors: N/A\n",
        "GPU 0: NVIDIA H100 (UUID: GPU-0a)\n\t Link 0: Errors of a later driver: 1\n",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    """No counter is read as zero, and a link without a known counter is no healthy link."""
    with pytest.raises(ParseError):
        parse_nvlink_errors(text)


def test_the_link_that_added_errors_is_named_and_not_those_of_earlier_errors() -> None:
    """Link 3 has one replay from its training, link 7 has five new ones."""
    before = count(HOPPER, "Replay Errors", 1)
    (finding,) = found(before, count(before, "Replay Errors", 5, link=7))
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "gpu 0")
    assert "NVLinks 7 of the GPU count errors: 5 Replay Errors" in finding.cause


def test_a_link_that_went_down_is_a_failure_of_its_gpu() -> None:
    """An inactive link has no counters: its loss is what was found."""
    counters = "\t Link 17: Replay Errors: 0\n\t Link 17: Recovery Errors: 0\n\t Link 17: CRC Errors: 0\n"
    (finding,) = found(HOPPER, HOPPER.replace(counters, "", 1))
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "gpu 0")
    assert "NVLinks 17 of the GPU went down" in finding.cause


@pytest.mark.parametrize(("first", "second"), [(65535, 65535), (65500, 65535)])
def test_a_counter_at_its_maximum_proves_nothing(first: int, second: int) -> None:
    """CRC errors of a V100 stay at 65535: INCONCLUSIVE, with the warning of what was counted."""
    judged = found(count(HOPPER, "CRC Errors", first), count(HOPPER, "CRC Errors", second))
    (full,) = [one for one in judged if one.verdict is Verdict.INCONCLUSIVE]
    assert (full.subject, "NVLink 3 have reached 65535" in full.cause) == ("gpu 0", True)
    assert not any(one.verdict is Verdict.PASS for one in judged)
