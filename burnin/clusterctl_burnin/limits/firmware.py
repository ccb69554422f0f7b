"""The firmware that a limits file names: of adapters by PSID, of GPUs by product name, of modules by part number.

Without such a list firmware is only held to `hca_firmware_min` and to being alike on a node: which versions are right
is the vendor's and the site's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from clusterctl.fleet.finding import Verdict
from clusterctl.formats.documents import Text, Within
from clusterctl_burnin.limits.methods import Strict

Word = Literal["warn", "fail"]
_VERDICTS = {"warn": Verdict.WARN, "fail": Verdict.FAIL}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedVersions(Strict):
    """One kind of part. `versions`: any of them is right, as the tool writes them; `otherwise`: what another one is."""

    versions: Annotated[tuple[Text, ...], Within(min_length=1)]
    otherwise: Word
    source: Text

    @property
    def verdict(self) -> Verdict:
        return _VERDICTS[self.otherwise]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRequirements(Strict):
    """`wanted` by the part's kind; `others`: what a part of a kind that is not listed is."""

    others: Word
    wanted: Annotated[Mapping[Text, AllowedVersions], Within(min_length=1)]

    @property
    def stranger(self) -> Verdict:
        return _VERDICTS[self.others]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareRequirements(Strict):
    """`hca`: by PSID (`MT_0000000838`); `gpu_vbios`: by product name (`NVIDIA H100 80GB HBM3`); `transceiver`: by part
    number (`MMA4Z00-NS`). None: not set.
    """

    hca: PartRequirements | None = None
    gpu_vbios: PartRequirements | None = None
    transceiver: PartRequirements | None = None

    def __bool__(self) -> bool:
        return any(part is not None for part in (self.hca, self.gpu_vbios, self.transceiver))


NOTHING = FirmwareRequirements()
