"""How well parts are by the word of their BMC: a finding for each that it calls failing, else one for all it tells of.

No finding where it tells of none: whether they are there at all is for the counts to say, on the BMC or on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.quantity import Quantity


class Part(Protocol):
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
    of: Callable[[Inventory], Sequence[Part] | None]
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
    """CPUs, memory modules, GPUs and fans."""
    return tuple(found for kind in _KINDS for found in _judged(kind, kind.of(inventory) or ()))


def _judged(kind: _Kind, parts: Iterable[Part]) -> tuple[Finding, ...]:
    told = [part for part in parts if part.healthy is not None]
    failed = [part for part in told if not part.healthy]
    if failed or not told:
        return tuple(_failed(kind, part) for part in failed)
    return (passed(kind.check, "all that tell their health are well", measured=Quantity(len(told), "parts")),)


def _failed(kind: _Kind, part: Part) -> Finding:
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
