"""Limits: what a node of a hardware model must reach, each figure with its unit and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.finding import Digest
from clusterctl.fleet.quantity import Bound, Quantity, at_least, at_most, exactly
from clusterctl.formats.documents import Figure, Text, Within
from clusterctl_burnin.limits.firmware import NOTHING, FirmwareRequirements
from clusterctl_burnin.limits.methods import AllReduceMethod, Methods, PairMethod, Strict

VERSION = "version"
"""The unit of a limit that is a version; limits files list it under `versions`."""


@dataclass(frozen=True, slots=True)
class LimitKey:
    """A limit that a check or load judges by. `default` holds where a limits file does not name the limit; a limit
    that depends on the hardware has none, and every limits file must name it.
    """

    name: str
    unit: str
    default: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Strict):
    """A figure, its unit, and its source."""

    value: Figure
    unit: Text
    source: Text

    def __str__(self) -> str:
        return f"{self.value:g}"

    def quantity(self, value: float) -> Quantity:
        """Return a measured value in the limit's unit."""
        return Quantity(value, self.unit)

    @property
    def at_least(self) -> Bound:
        return at_least(self.value, self.unit)

    @property
    def at_most(self) -> Bound:
        return at_most(self.value, self.unit)

    @property
    def exactly(self) -> Bound:
        return exactly(self.value, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(Strict):
    """A version, numbers between dots (`28.39.1002`), and its source."""

    value: Annotated[str, Within(pattern=r"^\d+(\.\d+)+$")]
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLimit(Strict):
    """An entry of a limits file. Its `value` may be null: no source gives the figure. `source` has the reason."""

    value: Figure | None
    unit: Text
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVersion(Strict):
    """An entry under `versions` with a `value` that may be null."""

    value: Annotated[str, Within(pattern=r"^\d+(\.\d+)+$")] | None
    source: Text


@dataclass(frozen=True, slots=True)
class Limits:
    """One limits file. `digest` covers every figure, so that a verdict shows by which limits it was reached.

    `patience`: the checks' probes get so many times their time-outs, for hosts that are slow by nature. It is no part
    of the digest: no verdict rests on it.
    `compared`: the metrics by which a node is compared with its own fleet, in addition to the limits; all where
    the file lists none.
    `firmware`: the versions that are right, where the file names any.
    `open`: the limits without a figure. They stand in `limits` and `versions` as figures that everything meets, and a
    check that judges by one never passes (`check.without_figure`).
    """

    name: str
    digest: Digest
    methods: Methods
    limits: Mapping[str, Limit]
    versions: Mapping[str, Version]
    patience: float = 1.0
    compared: frozenset[str] = frozenset()
    firmware: FirmwareRequirements = NOTHING
    open: frozenset[str] = frozenset()

    def __getitem__(self, key: LimitKey | str) -> Limit:
        return self.limits[key if isinstance(key, str) else key.name]

    @property
    def pair(self) -> PairMethod:
        return self.methods.ib_write_bw

    @property
    def all_reduce(self) -> AllReduceMethod:
        return self.methods.all_reduce
