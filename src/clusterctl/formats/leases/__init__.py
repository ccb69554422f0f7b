"""DHCP servers' lease files: which MAC address has which IP address."""

from __future__ import annotations

from clusterctl.fleet.bmc import Lease
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.leases.dhcpd import is_dhcpd, read_dhcpd
from clusterctl.formats.leases.dnsmasq import is_dnsmasq, read_dnsmasq
from clusterctl.formats.leases.kea import is_kea, read_kea

_READERS = ((is_kea, read_kea), (is_dhcpd, read_dhcpd), (is_dnsmasq, read_dnsmasq))


def read_leases(text: str, file: str) -> tuple[Lease, ...]:
    """The leases in force, of whichever server wrote the file. Raises `UsageError` naming file and line."""
    for is_its, read in _READERS:
        if is_its(text):
            return read(text, file)
    remedy = "name ISC dhcpd's dhcpd.leases, Kea's lease CSV or dnsmasq.leases"
    raise UsageError("is no DHCP server's lease file", where=f"{file}:1", remedy=remedy)


__all__ = ["read_leases"]
