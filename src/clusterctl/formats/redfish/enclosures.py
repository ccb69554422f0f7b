"""Which chassis are the enclosure of one part.

Where such a chassis cannot be read, it hides what the BMC reports of that part. It hides no drive, no fan and no power
supply of the machine: the part itself has been read, and these are in other chassis.
Source: DMTF DSP2046 (Links of Processor, Drive, Memory and PCIeDevice; Controllers of NetworkAdapter).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.tree import Answers, RedfishTree, Resource

_GPU_TYPES = frozenset({"GPU", "Accelerator"})
_ELSEWHERE = {
    "gpus": frozenset({"drives", "fans", "psus"}),
    "hcas": frozenset({"drives", "fans", "psus"}),
    "drives": frozenset({"fans", "psus"}),
}
"""Kinds of parts that are not in the enclosure of one GPU, adapter or drive. A drive may share its backplane with
others, and a GPU its card with an adapter (H100 CNX).
"""
_KINDS = {"Drives": "drives", "NetworkAdapters": "hcas"}
"""Collection → kind of its members; a processor's kind depends on its type."""


def forgive_enclosures(tree: RedfishTree) -> None:
    """Take out of `unread` the chassis of single parts that hide nothing of the kind that is read now."""
    lost = [where for kind, where in tree.unread if kind == tree.kind]
    if lost and any(tree.kind in kinds for kinds in _ELSEWHERE.values()):
        owners = _owners(tree.answers)
        tree.forgive(
            [where for where in lost if tree.kind in _ELSEWHERE.get(owners.get(where.partition(" ")[0], ""), ())]
        )


def _owners(answers: Answers) -> dict[str, str]:
    """Return the kind of part by the path of each chassis that one GPU, adapter or drive alone names as its own.

    A chassis that anything else names, such as the System, a CPU or another chassis, is one of the machine.
    """
    resources = list(_resources(answers))
    whole = {path: one for one in resources for path in _devices(one)}
    by_path = {one.path: one for one in resources}
    named: dict[str, dict[str, str]] = defaultdict(dict)
    for one in resources:
        owner = whole.get(one.path) or by_path.get(_processor(one)) or one
        for path in _links(one, "Chassis"):
            named[path][owner.path] = _kind(owner)
    return {path: kind for path, owners in named.items() if len(owners) == 1 for kind in owners.values()}


def _resources(answers: Answers) -> Iterator[Resource]:
    """Yield each resource that was read, by itself or within its collection."""
    for path, body in answers.items():
        if isinstance(body, Mapping):
            yield Resource(path.partition("?")[0], body)
            members = body.get("Members")
            for member in members if isinstance(members, list) else ():
                if isinstance(member, Mapping) and isinstance(own := member.get("@odata.id"), str) and len(member) > 1:
                    yield Resource(own, member)


def _kind(one: Resource) -> str:
    """Return the kind of part; empty where the resource is neither a GPU nor an adapter nor a drive."""
    collection = one.path.split("/")[-2]
    if collection == "Processors":
        return "gpus" if one.body.get("ProcessorType") in _GPU_TYPES else ""
    return _KINDS.get(collection, "")


def _links(one: Resource, name: str) -> list[str]:
    """Return the paths below `Links`, one or several; none where the BMC garbles them."""
    try:
        found = one.value("Links", name)
        return one.references("Links", name) if isinstance(found, list) else [one.link("Links", name) or ""]
    except ParseError:
        return []


def _devices(one: Resource) -> list[str]:
    """Return the PCIe devices that are the same part."""
    try:
        controllers = one.each("Controllers")
    except ParseError:
        controllers = ()
    return [
        path for item in (one, *controllers) for name in ("PCIeDevice", "PCIeDevices") for path in _links(item, name)
    ]


def _processor(one: Resource) -> str:
    """Return the processor that a memory is part of; empty where it is none of one processor."""
    found = _links(one, "Processors") if one.path.split("/")[-2] == "Memory" else []
    return found[0] if len(found) == 1 else ""
