"""Which slot of a numbered series is empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware import part_health
from clusterctl.fleet.hardware.drives import judge_drive_count, judge_drives, judge_root_disk
from clusterctl.fleet.hardware.part_health import (
    contains,
    for_the_host,
    judge_parts,
    judge_psus,
    judged,
    label,
    unreported,
)
from clusterctl.fleet.hardware.products import names_gpu, names_machine
from clusterctl.fleet.hardware.sku import Sku, is_adapter
from clusterctl.fleet.hardware.temperatures import judge_temperatures
from clusterctl.fleet.node import Gpu, Hca, Inventory
from clusterctl.fleet.quantity import Quantity, at_least, exactly

_NUMBER = re.compile(r"\d+")


def absent_slots(present: Sequence[str], expected: int) -> tuple[str, ...]:
    """Return what is missing from a series like `Video.Slot.1-1 … Video.Slot.8-1`, of which `expected` exist.

    The series is taken to have no holes by design, and to begin at 0 or 1 (`GPU_0`, `GPU1`) or, higher up, at a 1
    (`Video.Slot.21-1`). Where that leaves two candidates they stand in one string: `GPU0 or GPU8`. Empty where the
    slots are not one series, or where it is unknown.
    """
    series = _series(present)
    missing = expected - len(set(present))
    if series is None or missing <= 0:
        return ()
    pieces, numbers = series
    low, high = min(numbers), max(numbers)
    gaps = [(number,) for number in range(low, high) if number not in numbers]
    beyond = missing - len(gaps)
    ends = _ends(low, high, beyond, expected) if beyond else []
    if beyond < 0 or ends is None:
        return ()
    return tuple(" or ".join(_name(pieces, number) for number in choice) for choice in (*gaps, *ends))


def _ends(low: int, high: int, count: int, expected: int) -> list[tuple[int, ...]] | None:
    """Return the numbers beyond the known ones, each with its alternatives; None where that is unknown."""
    above: list[tuple[int, ...]] = [(high + step,) for step in range(1, count + 1)]
    below: list[tuple[int, ...]] = [(low - step,) for step in range(count, 0, -1)]
    if low == 0 or (low > 10 and low % 10 == 1):
        return above
    if high == expected or (low > 10 and (low - count) % 10 == 1):
        return below
    return [(low - 1, high + 1)] if count == 1 else None


def _name(pieces: Sequence[str | None], number: int) -> str:
    return "".join(str(number) if piece is None else piece for piece in pieces)


def _series(slots: Sequence[str]) -> tuple[list[str | None], set[int]] | None:
    """Return the slots' common text, with None where the number is, and the numbers; None where they are no series.

    The number may stand in several places (`PCIe Slot 3 (3)`).
    """
    texts = list(map(_NUMBER.split, slots))
    digits = list(map(_NUMBER.findall, slots))
    if len(slots) < 2 or any(split != texts[0] for split in texts):
        return None
    varying = [at for at, column in enumerate(zip(*digits, strict=True)) if len(set(column)) > 1]
    numbers = [{int(found[at]) for at in varying} for found in digits]
    if set(map(len, numbers)) != {1}:
        return None
    return _pieces(texts[0], digits[0], varying), set.union(*numbers)


def _pieces(texts: Sequence[str], digits: Sequence[str], varying: Sequence[int]) -> list[str | None]:
    pieces: list[str | None] = [texts[0]]
    for at, text in enumerate(texts[1:]):
        pieces += [None if at in varying else digits[at], text]
    return pieces


def match(inventory: Inventory, sku: Sku) -> tuple[Finding, ...]:
    """Return a finding for each aspect: what is present, how healthy it is, and the BMC's roll-up."""
    return _explained((*(aspect(inventory, sku) for aspect in _ASPECTS), *_health(inventory, sku)))


def match_health(inventory: Inventory, sku: Sku) -> tuple[Finding, ...]:
    """Return the findings of `match` on the health of parts, sensors and machine, without what is present."""
    return _explained(_health(inventory, sku))


def _health(inventory: Inventory, sku: Sku) -> tuple[Finding, ...]:
    parts = (*judge_drives(inventory), *judge_psus(inventory, sku), *judge_parts(inventory))
    return (*parts, *_heat(inventory, sku), _bmc_health(inventory, sku))


def fitting_skus(inventory: Inventory, skus: Iterable[Sku]) -> tuple[Sku, ...]:
    """Return the SKUs of this make."""
    return tuple(sku for sku in skus if _is_make(inventory, sku))


def choose_sku(inventory: Inventory, skus: Iterable[Sku]) -> Sku | None:
    """Return the SKU of a machine of this make; None where none fits, or more than one: a SKU is never guessed.

    Counts are not looked at: a machine that lost half its GPUs must not pass as its smaller sister.
    """
    made = fitting_skus(inventory, skus)
    longest = max((len(sku.model) for sku in made), default=0)
    closest = [sku for sku in made if len(sku.model) == longest]
    if len(closest) > 1 and inventory.gpus:
        closest = [sku for sku in closest if _has_gpu(inventory.gpus, sku)]
    return closest[0] if len(closest) == 1 else None


def _has_gpu(gpus: Iterable[Gpu], sku: Sku) -> bool:
    return any(names_gpu(gpu.model, sku.gpu_model) for gpu in gpus)


def judge_model(inventory: Inventory, sku: Sku) -> Finding:
    """Return whether the machine is of the SKU's make."""
    finding = Finding(
        check="sku_model",
        verdict=Verdict.FAIL,
        code=Code.WRONG_MODEL,
        measured=f"{inventory.manufacturer} {inventory.model}",
        expected=f"{sku.manufacturer} {sku.model}",
        cause=f"this is a {inventory.manufacturer} {inventory.model}, not a {sku.manufacturer} {sku.model}",
        remedy="check that the BMC address belongs to this machine, then name the right SKU in the site file",
    )
    return judged(finding, good=_is_make(inventory, sku))


def _gpu_count(inventory: Inventory, sku: Sku) -> Finding:
    wanted = _ExpectedParts("gpu", "GPU", sku.gpu_count, sku.gpu_model, whole=inventory.complete("gpus"))
    return _judge_parts(wanted, inventory.gpus)


def _hca_count(inventory: Inventory, sku: Sku) -> Finding:
    """Count the adapters of the compute fabric; in a RoCE fabric cards for Ethernet only are among them.

    Other Ethernet cards of the machine (management, storage) are no adapters of the SKU's model, and no finding.
    """
    whole, adapters = inventory.complete("hcas"), inventory.hcas
    if sku.hca_link_layer == "Ethernet":
        ethernet = [one for one in inventory.ethernet_adapters or () if is_adapter(one.model, sku.hca_model)]
        whole = whole and all(one.kind != "ethernet_adapters" for one in inventory.unread)
        adapters = (*(adapters or ()), *ethernet) if adapters is not None or ethernet else None
    wanted = _ExpectedParts("hca", "HCA", sku.hca_count, sku.hca_model, whole=whole)
    return _judge_parts(wanted, adapters)


@dataclass(frozen=True, slots=True)
class _ExpectedParts:
    """Parts that a SKU has. `whole`: the BMC has given all that it lists."""

    name: str
    word: str
    count: int
    model: str
    whole: bool

    def fits(self, model: str) -> bool:
        """Return whether a part of this model is an expected one."""
        return is_adapter(model, self.model) if self.word == "HCA" else names_gpu(model, self.model)


def _judge_parts(wanted: _ExpectedParts, parts: Sequence[Gpu | Hca] | None) -> Finding:
    """Return whether there are as many parts of this model as the SKU has; parts of other models do not count.

    A BMC that lists none at all does not see such parts: then the host judges them.
    """
    check, word = f"{wanted.name}_count", wanted.word
    if parts is None:
        return for_the_host(check, f"the BMC does not list its {word}s", certain=False)
    if wanted.count and not parts:
        return for_the_host(check, f"the BMC lists no {word} at all", certain=True)
    found = _sort(wanted, parts)
    return _undecided(wanted, found) or _count(wanted, found)


@dataclass(frozen=True, slots=True)
class _FoundParts:
    """All parts: those of the `right` model, of `unknown` model, and of `other` models."""

    all: Sequence[Gpu | Hca]
    right: Sequence[Gpu | Hca]
    unknown: Sequence[Gpu | Hca]
    others: Sequence[Gpu | Hca]


def _sort(wanted: _ExpectedParts, parts: Sequence[Gpu | Hca]) -> _FoundParts:
    named = [part for part in parts if part.model]
    right = [part for part in named if wanted.fits(part.model)]
    unknown = [part for part in parts if wanted.model and not part.model]
    return _FoundParts(parts, right, unknown, [part for part in named if part not in right])


def _undecided(wanted: _ExpectedParts, found: _FoundParts) -> Finding | None:
    """Return the finding where parts of unknown model, or parts that could not be read, decide the count."""
    check, word, expected, right = f"{wanted.name}_count", wanted.word, wanted.count, len(found.right)
    if found.unknown and right <= expected <= right + len(found.unknown):
        slots = ", ".join(part.slot for part in found.unknown)
        return for_the_host(check, f"the BMC does not report the model of the {word} in slot {slots}", certain=True)
    if not wanted.whole and right < expected:
        cause = f"the BMC gives {right} of {expected} {word}s, and something that it lists could not be read"
        return for_the_host(check, cause, certain=False)
    return None


def _count(wanted: _ExpectedParts, found: _FoundParts) -> Finding:
    check, word, expected = f"{wanted.name}_count", wanted.word, wanted.count
    counted = [*found.right, *found.unknown]
    cause = f"{len(counted)} of {expected} {f'{word}s {wanted.model}'.strip()}"
    if found.others:
        cause += "; other models: " + ", ".join(f"{label(part)} ({part.model})" for part in found.others)
    gone = absent_slots([part.slot for part in found.all], expected) if len(found.all) < expected else ()
    if gone:
        cause += f"; absent: {', '.join(gone)}"
    finding = Finding(
        check=check,
        verdict=Verdict.FAIL,
        code=_COUNTS[check],
        measured=Quantity(len(counted), f"{word}s"),
        expected=exactly(expected, f"{word}s"),
        cause=cause,
        remedy=_part_remedy(word, counted, found.others, expected, gone),
    )
    return judged(finding, good=len(found.right) == expected)


_COUNTS = {"gpu_count": Code.GPU_COUNT, "hca_count": Code.HCA_COUNT}


def _part_remedy(
    word: str, right: Sequence[Gpu | Hca], others: Sequence[Gpu | Hca], expected: int, gone: Sequence[str]
) -> str:
    if len(right) > expected:
        return f"check that the node has the right SKU: it has more {word}s than that"
    if others:
        return f"replace the {word} in slot {', '.join(label(part) for part in others)} by one of the SKU's model"
    if gone:
        return f"reseat the {word} in slot {', '.join(gone)}; if it stays absent, replace it"
    there = ", ".join(part.slot for part in right) or "none"
    return f"find the {word} that is missing (present: {there}) and reseat it; if it stays absent, replace it"


def _cpu_count(inventory: Inventory, sku: Sku) -> Finding:
    if inventory.cpu_count is None:
        return for_the_host("cpu_count", "the BMC does not list its CPUs", certain=False)
    if inventory.cpu_count < sku.cpu_count and not inventory.complete("cpu_count"):
        cause = f"the BMC gives {inventory.cpu_count} of {sku.cpu_count} CPUs, and a processor could not be read"
        return for_the_host("cpu_count", cause, certain=False)
    finding = Finding(
        check="cpu_count",
        verdict=Verdict.FAIL,
        code=Code.CPU_COUNT,
        measured=Quantity(inventory.cpu_count, "CPUs"),
        expected=exactly(sku.cpu_count, "CPUs"),
        cause=f"{inventory.cpu_count} of {sku.cpu_count} CPUs",
        remedy="have the CPU reseated or replaced by the vendor's technician",
    )
    return judged(finding, good=inventory.cpu_count == sku.cpu_count)


def _memory_size(inventory: Inventory, sku: Sku) -> Finding:
    if inventory.memory_gib is None:
        return for_the_host("memory_size", "the BMC does not report the memory size", certain=False)
    finding = Finding(
        check="memory_size",
        verdict=Verdict.FAIL,
        code=Code.MEMORY_MISSING,
        measured=Quantity(inventory.memory_gib, "GiB"),
        expected=at_least(sku.memory_gib, "GiB"),
        cause=f"{inventory.memory_gib:g} GiB of memory, {sku.memory_gib} are expected",
        remedy="find the DIMM that the BMC's event log or inventory names, reseat it; if it stays absent, replace it",
    )
    return judged(finding, good=inventory.memory_gib >= sku.memory_gib)


def _heat(inventory: Inventory, sku: Sku) -> tuple[Finding, ...]:
    if inventory.temperatures is None and "temperatures" in sku.unreported:
        cause = "the BMC does not report its temperatures"
        return (unreported("temperatures", "temperature", cause, sku),)
    return judge_temperatures(inventory)


def _bmc_health(inventory: Inventory, sku: Sku) -> Finding:
    verdicts = {"OK": Verdict.PASS, "Warning": Verdict.WARN, "Critical": Verdict.FAIL}
    verdict = verdicts.get(inventory.health)
    if verdict is None:
        return unreported("health", "bmc_health", "the BMC does not report its overall health", sku)
    kinds = ", ".join(f"{one.name} {one.health}" for one in inventory.rollups)
    verdict = Verdict.WARN if kinds and verdict is Verdict.PASS else verdict
    good = verdict is Verdict.PASS
    return Finding(
        check="bmc_health",
        verdict=verdict,
        code=Code.PASSED if good else Code.BMC_HEALTH,
        cause=f"the BMC calls the machine's health {inventory.health}" + (f" ({kinds})" if kinds else ""),
        measured=inventory.health,
        expected="OK",
        remedy=""
        if good
        else "read the BMC's event log, repair the part that it names, then: clusterctl bmc clear-log",
    )


_ASPECTS: tuple[Callable[[Inventory, Sku], Finding], ...] = (
    judge_model,
    _gpu_count,
    _hca_count,
    _cpu_count,
    _memory_size,
    judge_drive_count,
    judge_root_disk,
)
_CAUSES = {
    "bmc_health": ("drives", "psu", *part_health.CHECKS, "temperature"),
    "memory_size": ("dimms",),
    "root_disk": ("drives",),
}
"""Check → the checks that explain it by their failing part: the BMC rolls them up; a dead drive reports no identity."""


def _explained(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return each finding that a failing part explains, as its consequence."""

    def linked(finding: Finding) -> Finding:
        causes = _CAUSES.get(finding.check, ())
        parts = (one for one in findings if one.check in causes and one.verdict is Verdict.FAIL and not one.root)
        part = None if finding.verdict is Verdict.PASS else next(parts, None)
        return finding if part is None else replace(finding, root=part.key)

    return tuple(linked(finding) for finding in findings)


def _is_make(inventory: Inventory, sku: Sku) -> bool:
    return contains(inventory.manufacturer, sku.manufacturer) and names_machine(inventory.model, sku.model)
