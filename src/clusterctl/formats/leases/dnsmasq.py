"""dnsmasq's `dnsmasq.leases`: `EXPIRY MAC ADDRESS HOSTNAME CLIENT-ID` a line, `*` for what is not known.

After a line `duid …` come leases of IPv6, which have no MAC address. A MAC address of another kind than Ethernet has
the kind in front (`06-…`). Source: dnsmasq(8), `--dhcp-leasefile`.
"""

from __future__ import annotations

import re

from clusterctl.fleet.bmc import Lease
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.macs import read_mac

_LINE = re.compile(r"^(\d+)\s+(\S+)\s+([0-9a-fA-F.:]+)\s+(\S+)(?:\s+(\S+))?$")
_OTHER_KIND = re.compile(r"^[0-9a-f]{2}-(?=[0-9a-f]{2}:)", re.IGNORECASE)


def is_dnsmasq(text: str) -> bool:
    """Whether the first line is a lease of dnsmasq, or begins those of IPv6."""
    first = text.lstrip().split("\n", 1)[0].strip()
    return bool(_LINE.match(first)) or first.startswith("duid ")


def read_dnsmasq(text: str, file: str) -> tuple[Lease, ...]:
    """The IPv4 leases. Raises `UsageError` naming file and line."""
    found: dict[str, Lease] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("duid "):
            break
        if not line.strip():
            continue
        match = _LINE.match(line.strip())
        if match is None:
            message = f"line not understood: {line[:80]!r}"
            raise UsageError(message, where=f"{file}:{number}", remedy="take the file that dnsmasq itself writes")
        _, mac, address, hostname, _ = match.groups()
        if _OTHER_KIND.match(mac):
            continue
        try:
            found[address] = Lease(address, read_mac(mac), "" if hostname == "*" else hostname)
        except ValueError as error:
            message = f"{error}, found {mac[:40]!r}"
            raise UsageError(message, where=f"{file}:{number}", remedy="correct or remove the line") from None
    return tuple(found.values())
