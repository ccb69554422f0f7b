"""A SKU proposed from one discovered machine, with the decisions for the operator; and its file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.hardware.products import form_of, product_of
from clusterctl.fleet.node import Drive, Gpu, Hca, Inventory
from clusterctl.fleet.peer_text import visible_line

GIGABYTE = 1_000_000_000
_GPU = re.compile(r"\b(GB300|GB200|GH200|B300|B200|H200|H100|H20|A100|A40|A30|L40S|L40|L4|V100)\b", re.IGNORECASE)
_HCA = re.compile(r"\b(ConnectX-\d+|BlueField-\d+)\b", re.IGNORECASE)
_TYPICAL_MEMORY_GIB = 64


@dataclass(frozen=True, slots=True)
class SkuField:
    """One field of a SKU file. `value` is None where the machine does not give it; `decide` is what an operator must
    decide or check, empty where nothing is open.
    """

    name: str
    value: Any
    decide: str = ""


def propose(name: str, inventory: Inventory, hardware: Mapping[str, str]) -> tuple[SkuField, ...]:
    """Return the fields of a SKU file for machines like this one.

    hardware  limits file → the hardware that it is for, as text
    """
    gpu, gpu_open = _model(inventory.gpus, _GPU, "GPU")
    limits, limits_open = _limits(gpu, inventory.gpus or (), hardware)
    return (
        SkuField("name", name),
        SkuField("manufacturer", inventory.manufacturer),
        SkuField("model", inventory.model),
        *_part("gpu", inventory.gpus, (gpu, gpu_open), whole=inventory.complete("gpus")),
        *_fabric(inventory),
        SkuField("cpu_count", inventory.cpu_count, "" if inventory.cpu_count else "the BMC reports no CPUs"),
        _memory(inventory),
        *_drives(inventory),
        _psus(inventory),
        *_unreported(inventory),
        SkuField("limits", limits, limits_open),
    )


def _fabric(inventory: Inventory) -> tuple[SkuField, ...]:
    """Return the fields of the compute fabric's adapters; where there are none, Ethernet adapters may be they."""
    ethernet = [one for one in inventory.ethernet_adapters or () if _family(one.model, _HCA)]
    roce = not inventory.hcas and bool(ethernet)
    adapters = ethernet if roce else inventory.hcas
    count, *others = _part("hca", adapters, _model(adapters, _HCA, "adapter"), whole=inventory.complete("hcas"))
    rate = SkuField("hca_rate_gbps", None, "the rate of one port that you bought, such as 400")
    if roce:
        asked = "these are Ethernet adapters: how many are of the compute fabric (RoCE)? 0 if it has none"
        layer = SkuField("hca_link_layer", "Ethernet", "take this line out if the fabric is InfiniBand")
        return (SkuField(count.name, count.value, asked), *others, layer, rate)
    if adapters and len(adapters) != len(inventory.gpus or adapters) and not count.decide:
        count = SkuField(count.name, count.value, "not one for each GPU: how many are of the compute fabric?")
    return (count, *others, rate) if adapters or adapters is None else (count, *others)


def _model(parts: Sequence[Gpu | Hca] | None, family: re.Pattern[str], word: str) -> tuple[str | None, str]:
    """Return the text that is part of every model, and what is open about it."""
    if not parts:
        return None, ""
    models = Counter(part.model for part in parts)
    if "" in models:
        return None, f"the BMC reports no model of {models['']} of {len(parts)} {word}s"
    names = {_family(model, family) for model in models}
    families = {_gpu_name(model) for model in models} if word == "GPU" else names
    if len(families) == 1 and "" not in names:
        return families.pop(), ""
    if len(models) == 1:
        return next(iter(models)), f"the operating system may name the {word} otherwise; a part of the name is enough"
    return None, f"the machine has {word}s of several models: {', '.join(sorted(models))}"


def _gpu_name(model: str) -> str:
    """Return the family in capitals, with the form factor where the model names it: `H100 NVL`."""
    form = {"PCIE": "PCIe"}.get(form_of(model), form_of(model))
    return f"{_family(model, _GPU).upper()} {form}".strip()


def _family(model: str, family: re.Pattern[str]) -> str:
    """Return the part of a model that names its family; empty where it names none."""
    found = family.search(model)
    return found[0] if found else ""


def _part(
    prefix: str, parts: Sequence[Gpu | Hca] | None, model: tuple[str | None, str], *, whole: bool
) -> tuple[SkuField, ...]:
    """Return count and model. `model`: with what is open about it; `whole`: the BMC has given all that it lists."""
    if parts is None:
        return (
            SkuField(f"{prefix}_count", None, "the BMC does not list them: how many did you buy?"),
            SkuField(f"{prefix}_model", None, "likewise"),
        )
    asked = "" if whole else "the BMC does not give all that it lists: how many did you buy?"
    asked = asked if parts else "the BMC lists none; correct it if there are any"
    count = SkuField(f"{prefix}_count", len(parts), asked)
    return (count, SkuField(f"{prefix}_model", *model)) if parts else (count,)


def _memory(inventory: Inventory) -> SkuField:
    if inventory.memory_gib is None:
        return SkuField("memory_gib", None, "the BMC reports no memory size")
    odd = inventory.memory_gib % _TYPICAL_MEMORY_GIB
    note = "is this all that you bought? A module may be missing" if odd else ""
    return SkuField("memory_gib", int(inventory.memory_gib), note)


def _drives(inventory: Inventory) -> tuple[SkuField, ...]:
    drives = inventory.drives
    if not drives:
        note = "the BMC lists no drive"
        return (SkuField("data_drive_count", None, note), SkuField("root_disk", None, f"{note}: {_RULE}"))
    rule, alike = _root_rule(drives)
    count = SkuField("data_drive_count", len(drives) - alike, "" if rule else "drives without the root disk")
    if rule is None:
        listed = ", ".join(f"{drive.slot} {drive.model} {drive.size_bytes / GIGABYTE:.0f} GB" for drive in drives)
        return (count, SkuField("root_disk", None, f"which drive does the OS go on? {listed}"))
    size = f"{min(drive.size_bytes for drive in drives) / GIGABYTE:.0f} GB"
    text = f"the {size} drive" if alike == 1 else f"any one of the {alike} drives of {size}, the other is left blank"
    return (count, SkuField("root_disk", rule, f"the OS goes on {text}; correct it if it must not"))


_RULE = "write a rule for the root disk (docs/how-to/add-a-sku.md)"


_PAIR = 2
_GAP = 1.2
"""How much larger the next drive is where the smallest ones are clearly another kind."""


def _root_rule(drives: Sequence[Drive]) -> tuple[Mapping[str, Any] | None, int]:
    """Return a rule for the one drive, or the two alike, that are clearly smaller than all others, and their number.

    None, and 1, where there are no such drives.
    """
    by_size = sorted((drive for drive in drives if drive.size_bytes), key=lambda drive: drive.size_bytes)
    if len(by_size) < max(_PAIR, len(drives)):
        return None, 1
    first = by_size[0]
    alike = [drive for drive in by_size if (drive.size_bytes, drive.model) == (first.size_bytes, first.model)]
    others = by_size[len(alike) :]
    larger = others[0].size_bytes if others else int(first.size_bytes * _GAP) + 1
    if len(alike) > _PAIR or first.size_bytes * _GAP > larger:
        return None, 1
    rule = {"max_gb": (first.size_bytes + larger) // 2 // GIGABYTE}
    return rule | ({"one_of": _PAIR} if len(alike) == _PAIR else {}), len(alike)


def _psus(inventory: Inventory) -> SkuField:
    if inventory.psus:
        return SkuField("psus", len(inventory.psus))
    return SkuField("psus", None, "none or shelf, where another controller or the rack has the power supplies")


def _unreported(inventory: Inventory) -> tuple[SkuField, ...]:
    """Return the field of what this BMC did not report of what most do; empty where it reported all, or is absent."""
    missing = {
        "health": not inventory.health,
        "psus": bool(inventory.psus) and all(psu.healthy is None for psu in inventory.psus or ()),
        "temperatures": inventory.temperatures is None,
    }
    names = [name for name, lacks in missing.items() if lacks]
    asked = "does no BMC of this model report it? Else take it out, and discover again"
    read = any(parts is not None for parts in (inventory.drives, inventory.psus, inventory.dimms, inventory.gpus))
    return (SkuField("unreported", names, asked),) if names and read else ()


_CARD = re.compile(r"\b(NVL|PCIe)\b", re.IGNORECASE)
_MODULE = re.compile(r"\bSXM", re.IGNORECASE)


def _limits(gpu: str | None, gpus: Sequence[Gpu], hardware: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the limits for this GPU: a card (NVL, PCIe) is slower than the module (SXM) of the same name."""
    word = re.compile(rf"\b{re.escape(product_of(gpu))}\b", re.IGNORECASE) if gpu else None
    fitting = sorted(name for name, text in hardware.items() if word and word.search(text))
    card = any(_CARD.search(one.model) for one in gpus)
    if len(fitting) == 1 and not (card and _MODULE.search(hardware[fitting[0]])):
        return fitting[0], ""
    known = ", ".join(fitting or sorted(hardware))
    return None, f"choose limits: {known}, or a file of your own"


MARK = "DECIDE"


def sku_text(fields: Sequence[SkuField], origin: str) -> str:
    """Return a SKU file; each open field has a comment that begins with `MARK`. `origin`: what the file is made of."""
    lines = [f"# Made of {visible_line(origin)}. Lines with {MARK} wait for a decision."]
    for one in fields:
        note = f"  # {MARK}: {visible_line(one.decide)}" if one.decide else ""
        lines.append(f"{one.name}: {_value(one.value)}{note}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Return a YAML flow value. JSON strings are YAML strings, so that no text of a BMC becomes syntax."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)
