"""The document of the node's built-in `load-sampler`: what rose on a node while a load ran, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from clusterctl.formats.documents import Count, Figure, Within, read_document

Second = Figure
"""Of the load, from 0."""
Number = Annotated[float, Within(allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class SampledCounter:
    """A counter that rose: by how much in all, and when by how much (the first times only). `reset`: it fell once."""

    kind: str
    part: str
    counter: str
    rose: Count
    rises: tuple[tuple[Second, Count], ...]
    reset: bool


@dataclass(frozen=True, slots=True)
class SampledGauge:
    """The highest value, its second, and the lowest. `limit`: the part's own threshold; None where it has none."""

    kind: str
    part: str
    gauge: str
    high: Number
    at: Second
    low: Number
    limit: Number | None = None


@dataclass(frozen=True, slots=True)
class SampledReasons:
    """How many answers of nvidia-smi had a set of clock event reasons, and the second of the first one."""

    samples: Count
    first: Second


@dataclass(frozen=True, slots=True)
class SampledKernelLog:
    """The kernel's messages: second, facility, level, text. `lost` messages were overwritten, `dropped` not kept.

    earlier  so many seconds before the load's samples began are in it, too, as negative seconds
    """

    lines: tuple[tuple[Number, str, str, str], ...]
    lost: Count
    dropped: Count
    error: str
    earlier: Figure = 0.0

    @property
    def whole(self) -> bool:
        """Return whether each message of the time was kept."""
        return not (self.lost or self.dropped or self.error)


@dataclass(frozen=True, slots=True)
class LoadSamples:
    """What a sampler saw.

    began, seconds  the node's clock at its start, and how long it ran
    adapters        the InfiniBand devices by PCI address
    sensors         so many temperature sensors of adapters were read
    gpu_rows        so many rows nvidia-smi printed
    errors          why something could not be read, by kind of part
    read            of how many parts of each kind the counters were read
    reasons         by GPU and mask of clock event reasons
    """

    version: Literal[1]
    began: Number
    seconds: Second
    interval: Second
    samples: Count
    processor_seconds: Second
    kernel: SampledKernelLog
    adapters: dict[str, str]
    sensors: Count
    gpu_rows: Count
    errors: dict[str, str]
    read: dict[str, Count]
    counters: tuple[SampledCounter, ...]
    gauges: tuple[SampledGauge, ...]
    reasons: dict[str, dict[str, SampledReasons]]

    def rises(self, kind: str, part: str = "") -> tuple[SampledCounter, ...]:
        """Return the counters of these parts that rose; of all parts of the kind without `part`."""
        return tuple(one for one in self.counters if one.kind == kind and part in ("", one.part) and one.rose)

    def highs(self, kind: str) -> tuple[SampledGauge, ...]:
        return tuple(one for one in self.gauges if one.kind == kind)


def parse_load_samples(text: str) -> LoadSamples:
    """Return the document. Raises `ParseError` for another one."""
    return read_document(LoadSamples, text, "load-samples")
