"""What a machine of a kind must have. One YAML file per SKU; the site edge loads and validates it into this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterctl.fleet.settings.baseline import Baseline


@dataclass(frozen=True, slots=True)
class RootDisk:
    """A rule that must match exactly one drive. Fields left at their default are not asked for."""

    serial: str = ""
    wwn: str = ""
    model: str = ""
    min_bytes: int = 0
    max_bytes: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sku:
    """Counts are exact; models match as case-insensitive substrings; `memory_gib` is a floor.

    `limits` names the limits file (`burnin/limits/<name>.yml` or the site's `limits/<name>.yml`); `baseline` is what
    its BIOS and firmware must be, None where the site has not decided it.

    psus        how many power supplies the BMC lists; `none`: another controller has them; `shelf`: the rack's power
                shelf has them; None: not said
    unreported  what its BMC does not report: `health` (of the whole machine), `psus` (their health), `temperatures`
    """

    name: str
    manufacturer: str
    model: str
    gpu_count: int
    gpu_model: str
    hca_count: int
    hca_model: str
    hca_rate_gbps: int
    cpu_count: int
    memory_gib: int
    data_drive_count: int
    root_disk: RootDisk
    limits: str
    baseline: Baseline | None = None
    psus: int | Literal["none", "shelf"] | None = None
    unreported: frozenset[str] = frozenset()
