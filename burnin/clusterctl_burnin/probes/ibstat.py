"""What the adapter checks and the loads share: one `ibstat`."""

from __future__ import annotations

from clusterctl.formats.infiniband.adapters import Adapter, parse_ibstat
from clusterctl_burnin.check import Expected
from clusterctl_burnin.probe import Probe, Readings

IBSTAT = Probe("ibstat", ("ibstat",), role="ib_tools")


def infiniband(readings: Readings) -> tuple[Adapter, ...]:
    """The adapters in InfiniBand mode, `mlx5_2` before `mlx5_10`. Raises `UnmeasuredError` and `ParseError`."""
    return tuple(adapter for adapter in parse_ibstat(readings.text(IBSTAT)) if adapter.infiniband)


def serial_of(adapter: Adapter, expected: Expected) -> str:
    """The serial by which the BMC knows the adapter, found by its GUID; empty where it is unknown."""
    guids = {adapter.node_guid, *(port.guid for port in adapter.ports)}
    told = (expected.inventory.hcas if expected.inventory else None) or ()
    return next((hca.serial for hca in told if hca.serial and hca.guid in guids), "")
