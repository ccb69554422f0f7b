"""Plans for a fabric: the wiring of a standard fat tree, and the burn that loads every link of a built one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.cabling.burn.plan import BurnPlan, Lengths, plan_burn
from clusterctl.cabling.generate.fat_tree import PortNaming, generate, ufm_slots
from clusterctl.cabling.generate.materials import RoomSize, bill_of_materials, labels_csv, with_lengths
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, fewest_tiers, shape_of
from clusterctl.formats.infiniband.opensm import parse_dump_fts, parse_opensm_log
from clusterctl.formats.wiring.csv_plan import wiring_csv
from clusterctl.operations.documents import as_usage, lines_in, write_document
from clusterctl.operations.fabric_files import fabric_in

TWIN_CAGES_FROM = 64
"""Ports of a switch from which on two of them share a cage, unless the operator states otherwise: NDR switches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTreeRequest:
    """A rail-optimised, non-blocking fat tree.

    rails       adapters of each host
    radix       ports of every switch
    tiers       of switches; None: as few as carry the hosts
    adapters    the hosts' HCAs by rail; none: mlx5_0, mlx5_1 …
    twin_cages  two ports share a cage; None: from 64 ports on
    layout      of racks
    room        distances, for the lengths of cables
    ufm_ports   ports for UFM appliances, in the place of the last hosts
    out         the file that is written; None: no file
    labels      the file of cable labels; None: no file
    bom         the file of the bill of materials; None: no file
    force       replace the files
    """

    hosts: int
    rails: int = 8
    radix: int = 64
    tiers: int | None = None
    adapters: tuple[str, ...] = ()
    twin_cages: bool | None = None
    layout: RackLayout = field(default_factory=RackLayout)
    room: RoomSize = field(default_factory=RoomSize)
    ufm_ports: int = 0
    out: Path | None = None
    labels: Path | None = None
    bom: Path | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTreeCounts:
    """Sizes of the tree. `networks`: separate ones, where rails do not meet; `even_pods`: pods are of one size."""

    hosts: int
    rails: int
    tiers: int
    pods: int
    leaf_switches: int
    spine_switches: int
    core_switches: int
    links: int
    host_links: int
    networks: int
    even_pods: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTreeResult:
    """The plan as `wiring.csv`, its sizes and its number of racks."""

    csv: str
    counts: FatTreeCounts
    racks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnPlanRequest:
    """`tables`: output of dump_fts; `fabric`: a reading of the same moment; `opensm_log`: names the tables' engine."""

    tables: Path
    fabric: Path
    opensm_log: Path | None = None
    lengths: Lengths = field(default_factory=Lengths)


def run_fat_tree(request: FatTreeRequest) -> FatTreeResult:
    """Generate the wiring plan, and write it where a file is named."""
    places = request.hosts + ufm_slots(request.ufm_ports, request.rails)
    tiers = request.tiers or fewest_tiers(places, request.rails, request.radix)
    shape = shape_of(FabricSize(places, request.rails, request.radix, tiers))
    naming = _port_naming(request)
    made = with_lengths(generate(shape, naming, request.layout, request.ufm_ports), request.room)
    text = wiring_csv(made)
    if request.out is not None:
        write_document(request.out, text, option="--out", force=request.force)
    if request.labels is not None:
        write_document(request.labels, labels_csv(made), option="--labels", force=request.force)
    if request.bom is not None:
        write_document(
            request.bom, bill_of_materials(made, twin_cages=naming.twin_cages), option="--bom", force=request.force
        )
    counts = FatTreeCounts(
        hosts=request.hosts,
        rails=shape.wanted.rails,
        tiers=shape.wanted.tiers,
        pods=shape.pods,
        leaf_switches=shape.leaves,
        spine_switches=shape.spines,
        core_switches=shape.cores,
        links=len(made.cables),
        host_links=sum(cable.destination.device in made.hosts for cable in made.cables),
        networks=shape.networks,
        even_pods=shape.even,
    )
    return FatTreeResult(csv=text, counts=counts, racks=len({place.rack for place in made.locations.values()}))


def _port_naming(request: FatTreeRequest) -> PortNaming:
    """Return the names of ports as requested, else those that are usual for the switches' radix."""
    names = request.adapters or tuple(f"mlx5_{number}" for number in range(request.rails))
    by_radix = request.radix >= TWIN_CAGES_FROM and request.radix % 4 == 0
    return PortNaming(names, by_radix if request.twin_cages is None else request.twin_cages)


def run_burn_plan(request: BurnPlanRequest) -> BurnPlan:
    """Plan the flows that load every link, by the fabric's live forwarding tables."""
    with as_usage():
        log = None
        if request.opensm_log is not None:
            log = parse_opensm_log(lines_in(request.opensm_log), file=str(request.opensm_log))
        tables = parse_dump_fts(lines_in(request.tables), file=str(request.tables))
        return plan_burn(fabric_in(request.fabric), tables, log, request.lengths)
