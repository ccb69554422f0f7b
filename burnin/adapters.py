"""What the adapter checks and the loads share: one `ibstat`."""

from __future__ import annotations

from clusterctl.burnin.probe import Probe, Readings
from clusterctl.formats.ibstat import Adapter, parse_ibstat

IBSTAT = Probe("ibstat", ("ibstat",))


def infiniband(readings: Readings) -> tuple[Adapter, ...]:
    """The adapters in InfiniBand mode, `mlx5_2` before `mlx5_10`. Raises `UnmeasuredError` and `ParseError`."""
    return tuple(adapter for adapter in parse_ibstat(readings.text(IBSTAT)) if adapter.infiniband)
