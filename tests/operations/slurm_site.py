"""A site with a small rail-optimised fabric and a cluster in its site file; its journal is written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import Cpu
from clusterctl.operations.context import open_site
from tests.edges.site.ready import write_ready_site
from tests.events import advances, new_event
from tests.steps.fakes import inventory

HOSTS = tuple(f"node{number:03}" for number in range(1, 9))


def write(folder: Path, cluster: Mapping[str, object], *, gold: Iterable[str] = HOSTS, address: str = "10.0.1") -> Path:
    """Eight hosts in two units of four; `gold` ones are, the others are not in the journal."""
    site = folder / "site"
    write_ready_site(site)
    listed = "".join(f"{name},10.20.0.{number},S{number},A01,{number}\n" for number, name in enumerate(HOSTS, start=11))
    (site / "bmcs.csv").write_text(f"name,bmc_address,serial,rack,unit\n{listed}")
    (site / "wiring.csv").write_text(wiring())
    scheduler = {"kind": "slurm", "feature": "gold", "cluster": dict(cluster)}
    with (site / "site.yml").open("a") as file:
        file.write(yaml.safe_dump({"scheduler": scheduler}))
    append(site, [event for name in gold for event in golden(name, f"{address}.{int(name[4:])}")])
    return site


def wiring() -> str:
    """Return a plan: four hosts on the two leaves of each unit, which meet in two spines."""
    cables = [
        f"{host},mlx5_{rail},leaf-u{index // 4}-r{rail},{index % 4 + 1}"
        for index, host in enumerate(HOSTS)
        for rail in range(2)
    ]
    cables += [
        f"leaf-u{unit}-r{rail},{spine + 33},spine-{spine},{unit * 2 + rail + 1}"
        for unit in range(2)
        for rail in range(2)
        for spine in range(2)
    ]
    return "\n".join(["source_device,source_port,destination_device,destination_port", *cables, ""])


def golden(name: str, address: str, *, cores: int | None = 56) -> list[NewEvent]:
    """What the journal has of a gold node, whose BMC reports its cores or not."""
    number = int(name[4:])
    found = replace(
        inventory(f"S{number + 10}"),
        memory_gib=2048.0,
        cpus=tuple(Cpu(f"CPU.{socket}", "Xeon", cores) for socket in (1, 2)),
    )
    data = {"inventory": inventory_to_data(found), "sku": "dell-xe9680-h100", "root_disk": f"DISK-S{number + 10}"}
    place = {"name": name, "bmc": f"10.20.0.{number + 10}", "rack": "A01", "unit": number + 10}
    node = f"id-{name}"
    return [
        new_event("node", node, Kind.NODE_DESCRIBED, place),
        new_event("node", node, Kind.NODE_IDENTIFIED, data),
        *advances(node, "gold"),
        new_event("node", node, Kind.NODE_ADDRESSED, {"address": address}),
    ]


def append(site: Path, events: Iterable[NewEvent]) -> None:
    """Write events into the site's journal."""
    context = open_site(site)
    context.journal.append(list(events))
    context.journal.close()
