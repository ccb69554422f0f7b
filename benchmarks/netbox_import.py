"""Seconds that an import from an emulated NetBox of N nodes, and an export to it, take.

    python -m benchmarks.netbox_import 2000

The emulator runs in another process and answers at once: a real NetBox takes longer for each page, and far longer for
each write.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Drive, Serial
from clusterctl.operations import netbox_export
from clusterctl.operations.context import open_site
from clusterctl.operations.netbox_import import NetboxImportRequest, prepare, preview, run
from clusterctl.operations.operation import Control
from tests.events import advances, new_event
from tests.netbox.emulator import World, served
from tests.netbox.sites import site
from tests.netbox.worlds import SITE, address, cable, device, end, interface
from tests.steps.fakes import inventory

RAILS, PER_LEAF = 8, 32
DRIVES = 24
"""Parts with a serial number of a node: as many as a server has GPUs, adapters and drives."""
EXPORT = "  export: {statuses: {gold: active}, tags: {gold: gold}}\n"


def large_world(nodes: int) -> World:
    """Return a site of nodes with a BMC, eth0 and 8 rails; each 32 nodes have 8 leafs of their own."""
    world = World()
    world.add("dcim/sites", SITE)
    world.add("extras/tags", {"id": 1, "name": "Gold", "slug": "gold"})
    for page in ("devices", "interfaces", "cables", "inventory-items"):
        world.pages[f"dcim/{page}"] = {}
    world.pages |= {"ipam/ip-addresses": {}, "extras/journal-entries": {}}
    for at in range(nodes):
        pod, port = divmod(at, PER_LEAF)
        if port == 0:
            leafs = [
                device(100_000 + pod * RAILS + rail, f"leaf-{pod}-{rail}", "leaf", rack=f"L{pod}")
                for rail in range(RAILS)
            ]
            world.add("dcim/devices", *leafs)
        bmc_ip, own_ip = f"10.{at >> 8}.1.{at & 255}/8", f"10.{at >> 8}.2.{at & 255}/8"
        made = device(at + 1, f"n{at + 1}", rack=f"R{at // 4}", unit=float(at % 4 * 8 + 1), oob=bmc_ip, primary=own_ip)
        bmc = interface(at * 100 + 1, made, "bmc", mgmt_only=True, mac=f"02:00:00:01:{at >> 8:02x}:{at & 255:02x}")
        eth0 = interface(at * 100 + 2, made, "eth0", mac=f"02:00:00:02:{at >> 8:02x}:{at & 255:02x}")
        world.add("dcim/devices", made)
        world.add("dcim/interfaces", bmc, eth0)
        world.add("ipam/ip-addresses", address(at * 2 + 1, bmc, bmc_ip), address(at * 2 + 2, eth0, own_ip))
        for rail, leaf in enumerate(leafs):
            hca = interface(at * 100 + 10 + rail, made, f"mlx5_{rail}")
            there = interface(10_000_000 + at * 10 + rail, leaf, f"IB1/{port // 2 + 1}/{port % 2 + 1}")
            world.add("dcim/interfaces", hca, there)
            world.add("dcim/cables", cable(at * RAILS + rail + 1, [end(hca)], [end(there)]))
    return world


def serve(nodes: int, ready: Event, done: Event, where: str) -> None:
    """Serve the world until the measurement is done."""
    with served(large_world(nodes)) as url:
        Path(where).write_text(url)
        ready.set()
        done.wait()


def make_gold(folder: Path, nodes: int) -> None:
    """Write into the journal that all nodes are gold, with their parts."""
    with closing(open_site(folder).journal) as journal:
        for at in range(1, nodes + 1):
            drives = tuple(Drive(str(bay), "M.2", 480_000_000_000, Serial(f"D{at}-{bay}")) for bay in range(DRIVES))
            found = inventory_to_data(replace(inventory(f"S{at:04}"), drives=drives))
            described = {"name": f"n{at}", "bmc": "192.0.2.1", "rack": "A01", "unit": 4}
            identified = {"inventory": found, "sku": "lab", "root_disk": f"D{at}-0"}
            journal.append(
                [
                    new_event("node", f"id-n{at}", Kind.NODE_DESCRIBED, described),
                    new_event("node", f"id-n{at}", Kind.NODE_IDENTIFIED, identified),
                    *advances(f"id-n{at}", "gold"),
                ]
            )


def export(folder: Path, what: str) -> None:
    """Print the seconds of one export."""
    context = open_site(folder)
    with closing(context.journal):
        began, used = time.monotonic(), time.process_time()
        result = netbox_export.run(context, netbox_export.NetboxExportRequest(), Control())
        wall, cpu = time.monotonic() - began, time.process_time() - used
    print(f"{what}: {len(result.outcomes)} nodes written, exit code {result.exit_code}, {wall:.1f} s, CPU {cpu:.1f} s")


def main() -> None:
    """Print the seconds of the reading, of a first import and of a second one, and of two exports."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    ready, done = multiprocessing.Event(), multiprocessing.Event()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "url"
        server = multiprocessing.Process(target=serve, args=(nodes, ready, done, str(place)), daemon=True)
        server.start()
        ready.wait()
        made = site(Path(folder) / "site", place.read_text(), EXPORT)
        for what in ("first import", "second import"):
            began, used = time.monotonic(), time.process_time()
            plan = prepare(made, NetboxImportRequest(), Control())
            changed = len({change.node for change in preview(plan).changes})
            read = time.monotonic() - began
            run(plan, Control())
            wall, cpu = time.monotonic() - began, time.process_time() - used
            print(f"{what}: {changed} nodes changed, compared in {read:.1f} s, done in {wall:.1f} s, CPU {cpu:.1f} s")
        make_gold(made, nodes)
        export(made, "first export")
        export(made, "second export")
        done.set()
        server.join()


if __name__ == "__main__":
    main()
