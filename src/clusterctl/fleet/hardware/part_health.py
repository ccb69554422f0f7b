"""What every comparison of expected and discovered shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Dimm, Drive, Gpu, Hca, Inventory, Psu, Serial, Step
from clusterctl.fleet.quantity import Quantity, exactly

ASK_AGAIN = "look in the evidence for the resource that could not be read; reset the BMC, then discover again"


def judged(finding: Finding, *, good: bool) -> Finding:
    """Return `finding`, which names what is wrong, or the pass of its check if `good`."""
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
    """Return the finding for what the burn-in's check of the same name measures with the host's own tools.

    `certain`: a second query of the BMC is of no use.
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


PSU_CHECK = "psu"


def unreported(kind: str, check: str, cause: str, sku: Sku) -> Finding:
    """Return what a health that the BMC does not report means: nothing where the SKU declares it unreported,
    else that it is unmeasured.
    """
    if kind in sku.unreported:
        return not_applicable(check, f"{cause}; SKU {sku.name} declares that its BMC does not report it")
    return replace(
        unmeasured(check, cause),
        remedy=f"{ASK_AGAIN}; if no BMC of this SKU reports it, write unreported: [{kind}] into skus/{sku.name}.yml",
    )


def judge_psus(inventory: Inventory, sku: Sku) -> tuple[Finding, ...]:
    """Return a finding for each supply that fails, else one for all. A supply of unknown health is not healthy."""
    psus = inventory.psus or ()
    if failed := [psu for psu in psus if psu.healthy is False]:
        return tuple(map(_failed_psu, failed))
    if isinstance(sku.psus, str):
        return (_external_psus(sku),)
    if not psus:
        return (_no_psu(sku),)
    return (_whole_psus(psus, sku, whole=inventory.complete("psus")),)


def _whole_psus(psus: Sequence[Psu], sku: Sku, *, whole: bool) -> Finding:
    """Return the finding on supplies without a failed one. `whole`: the BMC has given all that it lists."""
    if not whole and len(psus) != sku.psus:
        return unmeasured(PSU_CHECK, "the BMC gives some of its power supplies only")
    if isinstance(sku.psus, int) and len(psus) != sku.psus:
        return _wrong_psu_count(psus, sku.psus)
    return _psu_health(psus, sku)


def _external_psus(sku: Sku) -> Finding:
    source = "the rack's power shelf" if sku.psus == "shelf" else "a chassis that another controller manages"
    return not_applicable(PSU_CHECK, f"SKU {sku.name} draws its power from {source}")


def _psu_health(psus: Sequence[Psu], sku: Sku) -> Finding:
    """Return the finding where the number is right and none fails."""
    silent = [psu for psu in psus if psu.healthy is None]
    counted = sku.psus is not None and "psus" in sku.unreported
    if silent and not counted:
        cause = f"the BMC does not report the health of power supply {_labels(silent)}"
        return unreported("psus", PSU_CHECK, cause, sku)
    count, unit = len(psus), "power supplies"
    cause = "all that report their health are healthy" if silent else "all are healthy"
    return passed(PSU_CHECK, cause, measured=Quantity(count, unit), expected=exactly(count, unit))


def _no_psu(sku: Sku) -> Finding:
    return replace(
        unmeasured(PSU_CHECK, "the BMC reports no power supply"),
        remedy=f"{ASK_AGAIN}; if machines of this SKU have none of their own, write psus: none, or psus: shelf where a "
        f"power shelf feeds them, into skus/{sku.name}.yml",
    )


def _wrong_psu_count(psus: Sequence[Psu], expected: int) -> Finding:
    there, unit = ", ".join(label(psu) for psu in psus), "power supplies"
    few = len(psus) < expected
    return Finding(
        check=PSU_CHECK,
        verdict=Verdict.FAIL,
        code=Code.PSU_COUNT,
        cause=f"{len(psus)} of {expected} power supplies; there are: {there}",
        measured=Quantity(len(psus), unit),
        expected=exactly(expected, unit),
        remedy="plug in or reseat the power supply whose bay is not listed; if it stays absent, replace it"
        if few
        else "check that the node has the right SKU: it has more power supplies than that",
    )


def _failed_psu(psu: Psu) -> Finding:
    return Finding(
        check=PSU_CHECK,
        verdict=Verdict.FAIL,
        code=Code.POWER_SUPPLY_FAILED,
        subject=psu.slot,
        cause=f"power supply {label(psu)} fails, or has no input",
        measured="failing",
        expected="well",
        remedy=f"check cord and feed of power supply {label(psu)}; if its light stays amber, replace it",
        serial=psu.serial or "",
    )


def _labels(psus: Sequence[Psu]) -> str:
    return ", ".join(label(psu) for psu in psus)


class JudgedPart(Protocol):
    """What all parts have that a BMC judges."""

    @property
    def slot(self) -> str: ...
    @property
    def healthy(self) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class _Kind:
    """`check` judges what `of` takes from an inventory; `remedy` has one `{}` for the part's slot and serial."""

    check: str
    word: str
    of: Callable[[Inventory], Sequence[JudgedPart] | None]
    remedy: str


_KINDS = (
    _Kind("cpus", "CPU", lambda inventory: inventory.cpus, "have CPU {} reseated or replaced by the vendor"),
    _Kind("dimms", "memory module", lambda inventory: inventory.dimms, "reseat memory module {}; then replace it"),
    _Kind("gpus", "GPU", lambda inventory: inventory.gpus, "power off and on; if GPU {} stays bad, replace it"),
    _Kind(
        "fans", "fan", lambda inventory: inventory.fans, "see that fan {} turns freely and is plugged in; replace it"
    ),
)
CHECKS = tuple(kind.check for kind in _KINDS)


def judge_parts(inventory: Inventory) -> tuple[Finding, ...]:
    """Judge CPUs, memory modules, GPUs and fans."""
    return tuple(found for kind in _KINDS for found in _judged(kind, inventory))


def _judged(kind: _Kind, inventory: Inventory) -> tuple[Finding, ...]:
    parts = kind.of(inventory) or ()
    if failed := [part for part in parts if part.healthy is False]:
        return tuple(_failed(kind, part) for part in failed)
    return health_of_all(kind.check, parts, whole=inventory.complete(kind.check))


def health_of_all(check: str, parts: Sequence[JudgedPart], *, whole: bool, unit: str = "parts") -> tuple[Finding, ...]:
    """Return the finding on parts without a failed one: PASS if all report their health, no finding if none does.

    If only some report it, or the BMC does not give all parts (not `whole`), the host's own tools decide on the rest.
    """
    silent = [part.slot for part in parts if part.healthy is None]
    count = len(parts) - len(silent)
    if not count:
        return ()
    if whole and not silent:
        return (passed(check, "all report their health, and are healthy", measured=Quantity(count, unit)),)
    others = f"not that of {', '.join(silent)}" if silent else "something that it lists could not be read"
    cause = f"the BMC reports the health of {count} {unit}, and {others}"
    return (
        Finding(
            check=check,
            verdict=Verdict.INCONCLUSIVE,
            code=Code.NOT_REPORTED,
            cause=cause,
            measured=Quantity(count, unit),
            remedy="let the node go on: the burn-in measures these parts on the host",
            deterministic=False,
            settled_by=Step.BURNIN.value,
        ),
    )


def _failed(kind: _Kind, part: JudgedPart) -> Finding:
    serial: Serial | None = getattr(part, "serial", None)
    name = f"{part.slot} (serial {serial})" if serial else part.slot
    return Finding(
        check=kind.check,
        verdict=Verdict.FAIL,
        code=Code.PART_UNHEALTHY,
        subject=part.slot,
        cause=f"the BMC reports {kind.word} {name} as failing",
        measured="failing",
        expected="well",
        remedy=kind.remedy.format(name),
        serial=serial or "",
    )
