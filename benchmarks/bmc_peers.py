"""What sushy and redfish_utilities read of the Redfish trees in tests/redfish_trees, compared with what discover reads.

    pip install sushy redfish_utilities
    python -m benchmarks.bmc_peers [CASE …]

Each reads the same BMC over HTTP. For each case and peer: the parts that the peer gives with a serial (processors,
memory modules, drives, network adapters that are there), and those of them that are not in our inventory. Ends with
status 1 where there are any. Memory of GPUs and adapters with Ethernet only are no parts of our inventory by
serial, and do not count. A resource that sushy rejects is left out of its figures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.node import Inventory
from clusterctl.formats.redfish.system import programmed
from clusterctl.formats.redfish.tree import ROOT
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import PASSWORD, SESSIONS, serve
from tests.redfish_trees.load import CASES, load_tree, load_truth
from tests.redfish_trees.test_redfish_trees import plain

Found = dict[str, set[str]]
KINDS = ("processors", "memory", "drives", "adapters")


def ours(address: BmcAddress) -> Found:
    """What discover reads."""
    soon = Deadline.after(60)
    with RedfishBmcs(FixedClock(), QUICK).open(plain(address), soon) as bmc:
        found: Inventory = bmc.inventory(soon).value
    adapters = {str(hca.serial) for hca in found.hcas or () if hca.serial}
    return {
        "processors": {str(one.serial) for one in (*(found.cpus or ()), *(found.gpus or ())) if one.serial},
        "memory": {str(one.serial) for one in found.dimms or () if one.serial},
        "drives": {str(one.serial) for one in found.drives or () if one.serial},
        "adapters": adapters,
    }


def of_utilities(address: BmcAddress) -> Found:
    """What redfish_utilities' inventory gives."""
    redfish, redfish_utilities = import_module("redfish"), import_module("redfish_utilities")
    context = redfish.redfish_client(f"http://127.0.0.1:{address.port}", "root", PASSWORD)
    context.login(auth="basic")
    redfish_utilities.config.__workarounds__ = True
    found: Found = {kind: set() for kind in KINDS}
    names = {"processors": "Processors", "memory": "Memory", "drives": "Drives", "adapters": "NetworkAdapters"}
    for unit in redfish_utilities.get_system_inventory(context):
        for kind, name in names.items():
            present = [one for one in unit[name] if one["State"] != "Absent"]
            found[kind] |= {one["SerialNumber"].strip() for one in present if one["SerialNumber"]}
    return found


def of_sushy(address: BmcAddress) -> Found:
    """What sushy's resources give. It has no memory modules."""
    sushy = import_module("sushy")
    auth = sushy.auth.BasicAuth("root", PASSWORD)
    service = sushy.Sushy(f"http://127.0.0.1:{address.port}/redfish/v1/", auth=auth)
    found: Found = {kind: set() for kind in KINDS}
    for system in _each(lambda: service.get_system_collection().get_members()):
        for one in _each(lambda s=system: s.processors.get_members()):
            found["processors"] |= _serial(one)
        for storage in _each(lambda s=system: s.storage.get_members()):
            for drive in _each(lambda s=storage: s.drives):
                found["drives"] |= _serial(drive)
    for chassis in _each(lambda: service.get_chassis_collection().get_members()):
        for adapter in _each(lambda c=chassis: c.network_adapters.get_members()):
            found["adapters"] |= _serial(adapter)
    return found


def _each(read: Callable[[], Any]) -> Iterator[Any]:
    """What can be read; a resource that the peer rejects is its loss."""
    with suppress(Exception):
        yield from read()


def _serial(one: Any) -> set[str]:
    state = one.json.get("Status") or {}
    reported = one.json.get("SerialNumber") or ""
    return {reported.strip()} if reported and state.get("State") != "Absent" else set()


def compare(name: str, directory: Path) -> int:
    """Print one case; return how many parts a peer has read and we have not."""
    tree = load_tree(name)
    own = {"Id": "RootService", "Name": "Root", "Links": {"Sessions": {"@odata.id": SESSIONS}}}
    tree[ROOT] = {"RedfishVersion": "1.15.0", **tree[ROOT], **own}
    missed = 0
    with serve(tree, directory, tls=False) as (_, address):
        mine = ours(address)
        print(f"{name}: ours {', '.join(f'{kind} {len(mine[kind])}' for kind in KINDS)}")
        for peer, read in (("sushy", of_sushy), ("redfish_utilities", of_utilities)):
            try:
                theirs = read(address)
            except Exception as error:  # noqa: BLE001 - whatever a peer raises is its result
                print(f"    {peer}: {type(error).__name__} {str(error)[:110]}")
                continue
            theirs = {kind: {one for one in found if programmed(one)} for kind, found in theirs.items()}
            lost = {kind: theirs[kind] - mine[kind] - _others(tree) for kind in KINDS}
            missed += sum(map(len, lost.values()))
            counts = ", ".join(f"{kind} {len(theirs[kind])}" for kind in KINDS)
            print(f"    {peer}: {counts}; not ours: { ({kind: one for kind, one in lost.items() if one} or 'none') }")
    return missed


def _others(tree: dict[str, Any]) -> set[str]:
    """Serials of what is no part of an inventory: GPU memory, FPGAs, Ethernet-only adapters and DPUs."""
    found = set()
    for path, body in tree.items():
        if not isinstance(body, dict) or "SerialNumber" not in body:
            continue
        kind = str(body.get("MemoryDeviceType", "")) + str(body.get("ProcessorType", ""))
        ethernet = "/NetworkAdapters/" in path and not any(
            word in str(body.get("Model")) for word in ("ConnectX", "MCX", "InfiniBand", "P4768")
        )
        if "HBM" in kind or "FPGA" in kind or ethernet:
            found.add(str(body["SerialNumber"]).strip())
    return found


def main() -> None:
    """Compare the cases that are named, else all that have an identity."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*")
    names = parser.parse_args().case or [name for name in CASES if "error" not in load_truth(name)["identity"]]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as directory:
        missed = sum(compare(name, Path(directory)) for name in names)
    print(f"parts that a peer reads and we do not: {missed}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
