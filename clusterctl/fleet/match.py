"""Expected × discovered: what a BMC tells of a machine against what its SKU says it must have.

One finding per aspect. What the BMC did not tell is INCONCLUSIVE, never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from clusterctl.fleet.drives import judge_drive_count, judge_root_disk, root_disk
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.judging import contains, judge, label, unmeasured
from clusterctl.fleet.node import Gpu, Hca, Inventory
from clusterctl.fleet.sku import Sku
from clusterctl.fleet.slots import absent_slots

__all__ = ["choose_sku", "match", "root_disk"]


def match(inventory: Inventory, sku: Sku) -> tuple[Finding, ...]:
    """Every aspect, in the order in which a technician would look."""
    return tuple(aspect(inventory, sku) for aspect in _ASPECTS)


def choose_sku(inventory: Inventory, skus: Iterable[Sku]) -> Sku | None:
    """The SKU that a machine of this make is; None where none fits, or more than one: this is never guessed.

    Counts are not looked at: a machine that lost half its GPUs must not pass as its smaller sister.
    """
    made = [sku for sku in skus if _is_make(inventory, sku)]
    longest = max((len(sku.model) for sku in made), default=0)
    closest = [sku for sku in made if len(sku.model) == longest]
    if len(closest) > 1 and inventory.gpus:
        models = [gpu.model for gpu in inventory.gpus]
        closest = [sku for sku in closest if any(contains(model, sku.gpu_model) for model in models)]
    return closest[0] if len(closest) == 1 else None


def _sku_model(inventory: Inventory, sku: Sku) -> Finding:
    return judge(
        "sku_model",
        _is_make(inventory, sku),
        measured=f"{inventory.manufacturer} {inventory.model}",
        expected=f"{sku.manufacturer} {sku.model}",
        wrong=f"this is a {inventory.manufacturer} {inventory.model}, not a {sku.manufacturer} {sku.model}",
        remedy="check that the BMC address belongs to this machine, then name the right SKU in the site file",
    )


def _gpu_count(inventory: Inventory, sku: Sku) -> Finding:
    return _judge_parts("gpu", "GPU", inventory.gpus, sku.gpu_count, sku.gpu_model)


def _hca_count(inventory: Inventory, sku: Sku) -> Finding:
    return _judge_parts("hca", "HCA", inventory.hcas, sku.hca_count, sku.hca_model)


def _judge_parts(name: str, word: str, parts: Sequence[Gpu | Hca] | None, expected: int, model: str) -> Finding:
    """Exactly so many of this model; parts of another model do not count, parts of unknown model decide nothing."""
    check = f"{name}_count"
    if parts is None:
        return unmeasured(check, f"the BMC does not tell its {word}s")
    right = [part for part in parts if part.model and contains(part.model, model)]
    unknown = [part for part in parts if model and not part.model]
    if unknown and len(right) <= expected <= len(right) + len(unknown):
        slots = ", ".join(part.slot for part in unknown)
        return unmeasured(check, f"the BMC does not tell the model of the {word} in slot {slots}")
    kind = f"{word}s {model}".strip()
    others = [part for part in parts if part not in right]
    wrong = f"{len(right)} of {expected} {kind}"
    if others:
        wrong += "; other models: " + ", ".join(f"{label(part)} ({part.model or 'model not told'})" for part in others)
    gone = absent_slots([part.slot for part in parts], expected) if len(parts) < expected else ()
    if gone:
        wrong += f"; absent: {', '.join(gone)}"
    return judge(
        check,
        len(right) == expected,
        measured=str(len(right)),
        expected=str(expected),
        wrong=wrong,
        remedy=_part_remedy(word, right, others, expected, gone),
    )


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
        return unmeasured("cpu_count", "the BMC does not tell its CPUs")
    return judge(
        "cpu_count",
        inventory.cpu_count == sku.cpu_count,
        measured=str(inventory.cpu_count),
        expected=str(sku.cpu_count),
        wrong=f"{inventory.cpu_count} of {sku.cpu_count} CPUs",
        remedy="have the CPU reseated or replaced by the vendor's technician",
    )


def _memory_size(inventory: Inventory, sku: Sku) -> Finding:
    if inventory.memory_gib is None:
        return unmeasured("memory_size", "the BMC does not tell the memory size")
    return judge(
        "memory_size",
        inventory.memory_gib >= sku.memory_gib,
        measured=f"{inventory.memory_gib:g}",
        expected=f"at least {sku.memory_gib}",
        unit="GiB",
        wrong=f"{inventory.memory_gib:g} GiB of memory, {sku.memory_gib} are expected",
        remedy="find the DIMM that the BMC's event log or inventory names, reseat it; if it stays absent, replace it",
    )


def _psu(inventory: Inventory, _sku: Sku) -> Finding:
    if inventory.psus_ok is None:
        return unmeasured("psu", "the BMC does not tell the state of its power supplies")
    return judge(
        "psu",
        inventory.psus_ok,
        measured="well" if inventory.psus_ok else "failing",
        expected="well",
        wrong="a power supply fails, or has no input",
        remedy="find the power supply with the amber light: check its cord and feed; if it stays amber, replace it",
    )


def _bmc_health(inventory: Inventory, _sku: Sku) -> Finding:
    verdicts = {"OK": Verdict.PASS, "Warning": Verdict.WARN, "Critical": Verdict.FAIL}
    verdict = verdicts.get(inventory.health)
    if verdict is None:
        return unmeasured("bmc_health", "the BMC does not tell its overall health")
    good = verdict is Verdict.PASS
    return Finding(
        "bmc_health",
        verdict,
        cause=f"the BMC calls the machine's health {inventory.health}",
        measured=inventory.health,
        expected="OK",
        remedy="" if good else "read the BMC's event log, mend the part that it names, then clear the log",
    )


_ASPECTS: tuple[Callable[[Inventory, Sku], Finding], ...] = (
    _sku_model,
    _gpu_count,
    _hca_count,
    _cpu_count,
    _memory_size,
    judge_drive_count,
    judge_root_disk,
    _psu,
    _bmc_health,
)


def _is_make(inventory: Inventory, sku: Sku) -> bool:
    return contains(inventory.manufacturer, sku.manufacturer) and contains(inventory.model, sku.model)
