"""A machine's BIOS attributes, as its BMC tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.baseline import Value


@dataclass(frozen=True, slots=True)
class Bios:
    """`registry` names the list of what there is to set; `pending` is what the next boot will bring.

    read_only  by the registry's word; None where it was not read, or the BMC does not tell
    """

    registry: str
    current: Mapping[str, Value]
    pending: Mapping[str, Value]
    read_only: frozenset[str] | None = None
