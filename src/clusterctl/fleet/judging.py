"""What every comparison of expected and discovered shares."""

from __future__ import annotations

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Dimm, Drive, Gpu, Hca, Psu, Step

ASK_AGAIN = "look in the evidence for the resource that could not be read; reset the BMC, then discover again"


def judged(finding: Finding, *, good: bool) -> Finding:
    """Return `finding`, which says what is wrong, or the pass of its check where it is `good`."""
    if not good:
        return finding
    return passed(finding.check, "as expected", measured=finding.measured, expected=finding.expected)


def unmeasured(check: str, cause: str) -> Finding:
    return Finding(
        check=check,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_REPORTED,
        cause=cause,
        remedy=ASK_AGAIN,
        deterministic=False,
    )


def for_the_host(check: str, cause: str, *, certain: bool) -> Finding:
    """What the burn-in's check of the same name measures with the host's own tools. `certain`: asking the BMC again is
    of no use.
    """
    remedy = f"let the node go on: the burn-in's {check} measures it on the host"
    return Finding(
        check=check,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_REPORTED,
        cause=cause,
        remedy=remedy,
        deterministic=certain,
        settled_by=Step.BURNIN.value,
    )


def contains(text: str, part: str) -> bool:
    return part.casefold() in text.casefold()


def label(part: Gpu | Hca | Drive | Psu | Dimm) -> str:
    return f"{part.slot} (serial {part.serial})" if part.serial else part.slot
