"""Which machine a BMC is in, from as few resources as possible: a sweep asks hundreds, and each request takes seconds.

`next_path` says what to read next, `read_identity` what is known by then. Source: DMTF DSP2046 (ComputerSystem,
Manager, Assembly).
"""

from __future__ import annotations

from clusterctl.fleet.bmc import Identity
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.bmc_port import next_interface, port_mac
from clusterctl.formats.redfish.greeting import read_greeting
from clusterctl.formats.redfish.lenient import link, links, read, serial_like, told, uuid, words
from clusterctl.formats.redfish.system import serial_of
from clusterctl.formats.redfish.tree import ROOT, Answers, NotYetReadError, Resource, Tree, Unreadable

_SERIAL_COST = 2
"""Requests that are spent at most, at a time, on a serial that the system does not tell."""
_BOARDS = ("HGX",)
"""How systems begin that are a board inside the machine and not the host."""


def next_path(answers: Answers, address: str) -> str | None:
    """What to read next to know more; None where all is known that can be. `address` is the one that was called."""
    root = read(answers, ROOT)
    if root is None:
        return None
    wanted = (_next_of_system(answers, root), _next_of_serial(answers, root), _manager_path(answers, root))
    ahead = next((path for path in wanted if path is not None and path not in answers), None)
    manager = _manager(answers, root)
    if ahead is not None or manager is None or read_greeting(root.body).bmc_mac is not None:
        return ahead
    return next_interface(answers, manager, address)


def read_identity(answers: Answers, address: str) -> Identity:
    """What is known so far; what could not be read or is not told stands in `problems`."""
    problems = [f"{path}: {found.reason}" for path, found in answers.items() if isinstance(found, Unreadable)]
    root = read(answers, ROOT)
    if root is None:
        return Identity(problems=tuple(problems))
    system, manager = _host(answers, root), _manager(answers, root)
    found = _serial(Tree(answers), system) if system is not None else ""
    if system is None:
        problems.append("the BMC lists no system that can be read")
    elif not found:
        problems.append(f"{system.path}: the BMC does not tell the machine's serial")
    return Identity(
        manufacturer=words(system, "Manufacturer"),
        model=words(system, "Model"),
        serial=Serial(found) if found else None,
        sku=words(system, "SKU"),
        uuid=uuid(system),
        bios=words(system, "BiosVersion"),
        bmc_firmware=words(manager, "FirmwareVersion"),
        bmc_mac=read_greeting(root.body).bmc_mac or port_mac(answers, manager, address),
        problems=tuple(problems),
    )


def _next_of_system(answers: Answers, root: Resource) -> str | None:
    """Systems, then its members until one is the host."""
    systems = link(root, "Systems")
    if systems is None or systems not in answers:
        return systems
    paths = _system_paths(answers, root)
    if any(_is_host(found) for path in paths if (found := read(answers, path))):
        return None
    return next((path for path in paths if path not in answers), None)


def _next_of_serial(answers: Answers, root: Resource) -> str | None:
    """Where the host does not know its serial, few other resources may."""
    system = _host(answers, root)
    tree = Tree(answers)
    if system is not None:
        _serial(tree, system)
    return next(iter(tree.wanted), None) if len(tree.wanted) <= _SERIAL_COST else None


def _serial(tree: Tree, system: Resource) -> str:
    """Empty where it is not told; `tree.wanted` then has what may tell it."""
    try:
        return serial_like(told(lambda: serial_of(tree, system)))
    except NotYetReadError:
        return ""


def _host(answers: Answers, root: Resource) -> Resource | None:
    """The system that boots an OS, of those that were read."""
    return max(
        (found for path in _system_paths(answers, root) if (found := read(answers, path))), key=_is_host, default=None
    )


def _is_host(system: Resource) -> bool:
    return system.body.get("BiosVersion") is not None or system.body.get("Boot") is not None


def _system_paths(answers: Answers, root: Resource) -> list[str]:
    """Boards inside the machine last."""
    paths = links(read(answers, link(root, "Systems")), "Members")
    return sorted(paths, key=lambda path: path.rsplit("/", 1)[-1].startswith(_BOARDS))


def _manager(answers: Answers, root: Resource) -> Resource | None:
    path = _manager_path(answers, root)
    return read(answers, path) if path != link(root, "Managers") else None


def _manager_path(answers: Answers, root: Resource) -> str | None:
    """The host's manager, else the first of all; the collection's path while its members are not known."""
    linked = links(_host(answers, root), "Links", "ManagedBy")
    if linked:
        return linked[0]
    managers = link(root, "Managers")
    return next(iter(links(read(answers, managers), "Members")), None) if managers in answers else managers
