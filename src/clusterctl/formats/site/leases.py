"""ISC dhcpd's `dhcpd.leases` (dhcpd.leases(5)): `lease ADDRESS { … }` and `host NAME { … }` blocks, appended as they
change, so the last one of an address counts. A block that the server was still writing is not there yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from clusterctl.fleet.bmc.observation import Lease
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.site.table import read_table

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"?|[{};]|#[^\n]*|[^\s{};"#]+')
"""A string that its line does not end is taken up to the line's end: the file is read in linear time."""
_BLOCK = re.compile(r"^[ \t]*(?:lease\s+[0-9a-f.:]+|host\s+\S+)\s*\{", re.MULTILINE | re.IGNORECASE)
_EMPTY = re.compile(r"^# The format of this file is documented in the dhcpd\.leases", re.MULTILINE)
_HARDWARE = re.compile(r"(?:[0-9a-f]{1,2}(?::[0-9a-f]{1,2})*)?", re.IGNORECASE)
"""As servers write the hardware address of a client: as many bytes as the client has in its request, also none."""
_ETHERNET = ["hardware", "ethernet"]
_STATE = ["binding", "state"]


def _client_mac(text: str) -> Mac | None:
    """Return the MAC address of a client; None for bytes that are none: what a client sends hides no other lease.

    Raises ValueError where the text is no hardware address of any length: the file is damaged.
    """
    try:
        return read_mac(text)
    except ValueError:
        if _HARDWARE.fullmatch(text):
            return None
        raise


def is_dhcpd(text: str) -> bool:
    """Return whether this is such a file; also one without leases yet, by the first line that the server writes."""
    return bool(_BLOCK.search(text) or _EMPTY.search(text))


@dataclass(slots=True)
class _Block:
    """`words` stand before the brace, `statements` inside it; blocks inside it are not looked at."""

    words: list[str]
    line: int
    statements: list[list[str]] = field(default_factory=list)

    def after(self, *head: str) -> str:
        """Return the first word behind `head`, of the last statement that begins so; empty where there is none."""
        found = [words for words in self.statements if words[: len(head)] == list(head) and len(words) > len(head)]
        return found[-1][len(head)] if found else ""


def read_dhcpd(text: str, file: str) -> tuple[Lease, ...]:
    """Return active leases and hosts with a fixed address. Raise `UsageError` with file and line."""
    found: dict[str, Lease] = {}
    for block in _blocks(text):
        if block.words[:1] == ["lease"] and len(block.words) > 1:
            address = block.words[1]
        elif block.words[:1] == ["host"]:
            address = block.after("fixed-address").rstrip(",")
        else:
            continue
        lease = _lease(block, address, file)
        if lease is not None:
            found[address] = lease
        elif address:
            found.pop(address, None)
    return tuple(found.values())


def _lease(block: _Block, address: str, file: str) -> Lease | None:
    """Return None where the address is unused: a lease that is free, expired or abandoned, or without a MAC."""
    state = block.after(*_STATE)
    hardware = block.after(*_ETHERNET)
    if not address or not hardware or state not in ("", "active"):
        return None
    try:
        mac = _client_mac(hardware)
    except ValueError as error:
        where = f"{file}:{block.line} hardware ethernet"
        raise UsageError(
            f"{error}, found {hardware[:40]!r}", where=where, remedy="correct or remove the entry"
        ) from None
    if mac is None:
        return None
    named = block.words[1] if block.words[0] == "host" and len(block.words) > 1 else ""
    return Lease(address, mac, block.after("client-hostname") or named)


def _blocks(text: str) -> Iterator[_Block]:
    """Yield each whole block of the outermost level."""
    open_blocks: list[_Block] = []
    words: list[str] = []
    for sign, line in _tokens(text):
        if sign == "{":
            open_blocks.append(_Block(words, line))
            words = []
        elif sign == "}":
            closed = open_blocks.pop() if open_blocks else None
            if closed is not None and not open_blocks:
                yield closed
            words = []
        elif sign == ";":
            if open_blocks and words:
                open_blocks[-1].statements.append(words)
            words = []
        else:
            words.append(sign)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield words, strings without their quotation marks, and signs, each with its line; comments are left out."""
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        found = match[0]
        if not found.startswith("#"):
            yield (found[1:].removesuffix('"') if found[0] == '"' else found), line


_LINE = re.compile(r"^(\d+)\s+(\S+)\s+([0-9a-fA-F.:]+)\s+(\S+)(?:\s+(\S+))?$")
_OTHER_KIND = re.compile(r"[0-9a-f]{2}-(?:[0-9a-f]{2}(?::[0-9a-f]{2})*)?", re.IGNORECASE)
"""Type and bytes of an address that is not Ethernet, or that has no byte."""


def is_dnsmasq(text: str) -> bool:
    """Return whether the first line is a lease of dnsmasq, or begins those of IPv6."""
    first = text.lstrip().split("\n", 1)[0].strip()
    return bool(_LINE.match(first)) or first.startswith("duid ")


def read_dnsmasq(text: str, file: str) -> tuple[Lease, ...]:
    """Return the IPv4 leases. Raise `UsageError` with file and line."""
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
        if _OTHER_KIND.fullmatch(mac):
            continue
        try:
            own = _client_mac(mac)
        except ValueError as error:
            message = f"{error}, found {mac[:40]!r}"
            raise UsageError(message, where=f"{file}:{number}", remedy="correct or remove the line") from None
        if own is not None:
            found[address] = Lease(address, own, "" if hostname == "*" else hostname)
    return tuple(found.values())


_NEEDED = ("address", "hwaddr")
_IN_USE = ("", "0")
"""Of `state`; 1 is declined, 2 expired and reclaimed, 3 released."""


def is_kea(text: str) -> bool:
    """Return whether the first line is Kea's headings."""
    headings = text.split("\n", 1)[0].split(",")
    return headings[0].strip() == "address" and "valid_lifetime" in headings


def read_kea(text: str, file: str) -> tuple[Lease, ...]:
    """Return the leases in force that have a hardware address. Raise `UsageError` with file, line and column."""
    table = read_table(text, file)
    for name in _NEEDED:
        if name not in table.headings:
            raise UsageError(f"has no column {name}", where=f"{file}:1", remedy="take the file that Kea itself writes")
    found: dict[str, Lease] = {}
    for line, cells in table.rows:
        row = dict(zip(table.headings, (cell.strip() for cell in cells), strict=False))
        address = row.get("address", "")
        in_force = row.get("state", "") in _IN_USE and row.get("valid_lifetime") != "0"
        mac = _mac(row["hwaddr"], file, line) if in_force and row.get("hwaddr") else None
        if mac is not None:
            hostname = row.get("hostname", "").replace("&#x2c", ",").rstrip(".")
            found[address] = Lease(address, mac, hostname)
        else:
            found.pop(address, None)
    return tuple(found.values())


def _mac(text: str, file: str, line: int) -> Mac | None:
    try:
        return _client_mac(text)
    except ValueError as error:
        where = f"{file}:{line} hwaddr"
        raise UsageError(f"{error}, found {text[:40]!r}", where=where, remedy="correct or remove the line") from None


_READERS = ((is_kea, read_kea), (is_dhcpd, read_dhcpd), (is_dnsmasq, read_dnsmasq))


def read_leases(text: str, file: str) -> tuple[Lease, ...]:
    """Return the leases in force, of whichever server wrote the file. Raises `UsageError` naming file and line."""
    for is_its, read in _READERS:
        if is_its(text):
            return read(text, file)
    remedy = "name ISC dhcpd's dhcpd.leases, Kea's lease CSV or dnsmasq.leases"
    raise UsageError("is no DHCP server's lease file", where=f"{file}:1", remedy=remedy)
