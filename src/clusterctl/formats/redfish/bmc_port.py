"""The BMC's own network port: which of a manager's interfaces answers at an address, and its MAC address.

Managers list a link to the host inside the machine beside it (Supermicro `ToHost`, OpenBMC `hostusb0`), and shared
ports that are switched off (HPE). Source: DMTF DSP2046, EthernetInterface; DSP0270, host interface.
"""

from __future__ import annotations

from functools import partial

from clusterctl.fleet.node import Mac
from clusterctl.formats.redfish.expand import expansion
from clusterctl.formats.redfish.lenient import link, links, mac, read, told, words
from clusterctl.formats.redfish.tree import Answers, Resource, Unreadable


def next_interface(answers: Answers, manager: Resource, address: str) -> str | None:
    """What to read next: all interfaces in one request where the BMC can, else one by one until one has `address`."""
    path = link(manager, "EthernetInterfaces")
    if path is None or _with_address(answers, manager, address):
        return None
    whole = _expanded(answers, path)
    if whole is not None and whole not in answers:
        return whole
    if path not in answers and not _interfaces(answers, manager):
        return path
    return next((member for member in links(read(answers, path), "Members") if member not in answers), None)


def port_mac(answers: Answers, manager: Resource | None, address: str) -> Mac | None:
    """The MAC address of the interface with `address`; else of the first that is up and leads out of the machine."""
    if manager is None:
        return None
    up = [item for item in _interfaces(answers, manager) if not _inside(item)]
    up.sort(key=lambda item: words(item, "Status", "State") == "Disabled")
    found = _with_address(answers, manager, address) or up
    return next((ours for item in found if (ours := _mac(item)) is not None), None)


def _with_address(answers: Answers, manager: Resource, address: str) -> list[Resource]:
    return [item for item in _interfaces(answers, manager) if address in _addresses(item)]


def _interfaces(answers: Answers, manager: Resource) -> list[Resource]:
    """Those that were read, in the collection or one by one."""
    path = link(manager, "EthernetInterfaces")
    if path is None:
        return []
    whole = read(answers, _expanded(answers, path))
    inside = (told(lambda: whole.each("Members")) or ()) if whole is not None else ()
    found = [item for item in inside if _mac(item) is not None]
    return found or [item for member in links(read(answers, path), "Members") if (item := read(answers, member))]


def _expanded(answers: Answers, path: str) -> str | None:
    """The path that gives the collection with its members in it, where the BMC offers that and has not refused it."""
    query = expansion(answers, path)
    return path + query if query and not isinstance(answers.get(path + query), Unreadable) else None


def _mac(interface: Resource) -> Mac | None:
    return mac(words(interface, "MACAddress")) or mac(words(interface, "PermanentMACAddress"))


def _addresses(interface: Resource) -> list[str]:
    kinds = ("IPv4Addresses", "IPv6Addresses")
    items = [item for kind in kinds for item in told(partial(interface.each, kind)) or ()]
    return [words(item, "Address").lower() for item in items]


def _inside(interface: Resource) -> bool:
    """A link between BMC and host has a link-local address only."""
    found = [address for address in _addresses(interface) if "." in address]
    return bool(found) and all(address.startswith("169.254.") for address in found)
