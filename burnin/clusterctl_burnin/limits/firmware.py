"""The firmware that a limits file names: of adapters by PSID, of GPUs by product name, of modules by part number.

Without such a list firmware is only held to `hca_firmware_min` and to being alike on a node: which versions are right
is the vendor's and the site's word.
"""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.finding import Verdict

Text = Annotated[str, pydantic.Field(min_length=1)]
Word = Literal["warn", "fail"]
_VERDICTS = {"warn": Verdict.WARN, "fail": Verdict.FAIL}


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class AllowedVersions(_Strict):
    """One kind of part. `versions`: any of them is right, as the tool writes them; `otherwise`: what another one is."""

    versions: Annotated[tuple[Text, ...], pydantic.Field(min_length=1)]
    otherwise: Word
    source: Text

    @property
    def verdict(self) -> Verdict:
        return _VERDICTS[self.otherwise]


class PartRequirements(_Strict):
    """`wanted` by the part's kind; `others`: what a part of a kind that is not listed is."""

    others: Word
    wanted: Annotated[dict[Text, AllowedVersions], pydantic.Field(min_length=1)]

    @property
    def stranger(self) -> Verdict:
        return _VERDICTS[self.others]


class FirmwareRequirements(_Strict):
    """`hca`: by PSID (`MT_0000000838`); `gpu_vbios`: by product name (`NVIDIA H100 80GB HBM3`); `transceiver`: by part
    number (`MMA4Z00-NS`). None: not set.
    """

    hca: PartRequirements | None = None
    gpu_vbios: PartRequirements | None = None
    transceiver: PartRequirements | None = None

    def __bool__(self) -> bool:
        return self.hca is not None or self.gpu_vbios is not None


NOTHING = FirmwareRequirements()
