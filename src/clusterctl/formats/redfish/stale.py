"""Whether what the BMC tells of the machine may be older than the machine: many learn parts only while it boots.

HPE: `Oem.Hpe.DeviceDiscoveryComplete` (iLO's HpeComputerSystemExt schema). Dell: the Lifecycle Controller collects
while the machine restarts, and writes down when (`DellSystem.LastSystemInventoryTime`).
"""

from __future__ import annotations

from typing import Any

from clusterctl.fleet.post import Post
from clusterctl.formats.redfish.resource import Answers, Resource
from clusterctl.formats.redfish.system import host_system
from clusterctl.formats.redfish.tree import NotYetReadError, Tree, Wanted

_HPE_COMPLETE = "vmaindevicediscoverycomplete"
_DELL = ("Oem", "Dell", "DellSystem")
_BOOTED = frozenset({"SystemHardwareInitializationComplete", "SetupEntered", "OSBootStarted", "OSRunning"})
_SUMMARIES = {"memory": ("MemorySummary", "TotalSystemMemoryGiB"), "processors": ("ProcessorSummary", "Count")}
_HPE_POSTED = frozenset({"FinishedPost", "InPostDiscoveryComplete"})


def stale(tree: Tree) -> str:
    """In words; empty where nothing says that it is."""
    host = host_system(tree)
    told = host.text("Oem", "Hpe", "DeviceDiscoveryComplete", "DeviceDiscovery")
    if told and told.lower() != _HPE_COMPLETE:
        return f"the BMC has not finished to discover the machine's devices ({told})"
    dell: Any = host.value(*_DELL)
    if (
        isinstance(dell, dict)
        and "LastSystemInventoryTime" in dell
        and not host.text(*_DELL, "LastSystemInventoryTime")
    ):
        return "the Lifecycle Controller has never collected this machine's inventory"
    if host.text("PowerState") != "Off":
        return ""
    unknown = [name for name, keys in _SUMMARIES.items() if host.has(keys[0]) and not host.number(*keys)]
    return f"the machine is off, and its BMC does not know its {' and '.join(unknown)} yet" if unknown else ""


def read_post(answers: Answers) -> Post | Wanted:
    """From HPE's PostState, else from BootProgress; a machine that is off has not booted, whatever it says."""
    tree = Tree(answers)
    try:
        host = host_system(tree)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    return post(host)


def post(host: Resource) -> Post:
    state = host.text("Oem", "Hpe", "PostState")
    progress = host.text("BootProgress", "LastState")
    if not (state or progress):
        return Post.UNKNOWN
    done = host.text("PowerState") == "On" and (state in _HPE_POSTED if state else progress in _BOOTED)
    return Post.DONE if done else Post.RUNNING
