"""What a machine of a kind must have. One YAML file per SKU; the site edge loads and validates it into this."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from clusterctl.fleet.settings.baseline import Baseline

ANY_SIZE = 2**63 - 1


_GENERATION = re.compile(r"\b(?:ConnectX-|MCX)(\d)", re.IGNORECASE)
_PART_NUMBER = re.compile(r"\bMCX\d", re.IGNORECASE)


def adapter_family(model: str) -> str:
    """Return `ConnectX-7` for a model of that family or a part number of it (MCX75310AAS-NEAT), else the model."""
    found = _GENERATION.search(model)
    return f"ConnectX-{found[1]}" if found else model


def is_adapter(model: str, wanted: str) -> bool:
    """Return whether an adapter's model is what a SKU names.

    BMCs and hosts give a family or a part number; where one of the two names the family alone, the family decides.
    """
    if wanted.casefold() in model.casefold():
        return True
    exact = _PART_NUMBER.search(model) and _PART_NUMBER.search(wanted)
    return not exact and bool(_GENERATION.search(wanted)) and adapter_family(model) == adapter_family(wanted)


@dataclass(frozen=True, slots=True)
class RootDisk:
    """A rule that must match exactly one drive. Fields left at their default are not asked for.

    bay, controller, protocol  as the BMC names them; the machine's own kernel knows none of them
    one_of     so many drives match, all alike; any one of them gets the OS, and the others are left alone
    chosen_by  `bmc`: of the drives that the BMC lists; `host`: of those that the machine's own kernel sees before
               anything is written; `installer`: the installer decides, and the first boot proves what it did
    """

    serial: str = ""
    wwn: str = ""
    model: str = ""
    min_bytes: int = 0
    max_bytes: int = ANY_SIZE
    bay: str = ""
    controller: str = ""
    protocol: str = ""
    one_of: int = 1
    chosen_by: Literal["bmc", "host", "installer"] = "bmc"

    def __str__(self) -> str:
        names = ("serial", "wwn", "model", "bay", "controller", "protocol")
        terms = [f"{name} {getattr(self, name)}" for name in names if getattr(self, name)]
        terms += [f"at least {self.min_bytes / 1e9:g} GB"] if self.min_bytes else []
        terms += [f"at most {self.max_bytes / 1e9:g} GB"] if self.max_bytes < ANY_SIZE else []
        return ", ".join(terms) or "any drive that an OS fits on"


LinkLayer = Literal["InfiniBand", "Ethernet"]
BlueFieldMode = Literal["nic", "dpu", "separated"]


@dataclass(frozen=True, slots=True)
class BlueFields:
    """The BlueField cards of a machine; adapters of the compute fabric are among them where they are such cards.

    mode        None: any
    firmware    this version or a later one; empty: any
    link_gts, link_width   of the PCIe link, in GT/s per lane and lanes; 0: what the card can have
    """

    count: int
    mode: BlueFieldMode | None = None
    firmware: str = ""
    link_gts: float = 0.0
    link_width: int = 0


@dataclass(frozen=True, slots=True)
class Sku:
    """Counts are exact; `memory_gib` is a floor. Models match without regard to case: as whole words, see `products`.
    A form factor (`H100 SXM`, `H100 PCIe`, `H100 NVL`) counts where the GPU's own name has one.

    `limits` names the limits file (`burnin/limits/<name>.yml` or the site's `limits/<name>.yml`); `baseline` is what
    its BIOS and firmware must be, None where the site has not decided it.

    hca_link_layer  the link layer of the compute fabric's adapters; Ethernet is RoCE
    psus        how many power supplies the BMC lists; `none`: another controller has them; `shelf`: the rack's power
                shelf has them; None: not given
    bluefields  its BlueField cards; None: not judged
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
    hca_link_layer: LinkLayer = "InfiniBand"
    bluefields: BlueFields | None = None
