"""The machine that a BMC is in: serial, model and manufacturer, each from the first resource that gives it.

1. The System that boots the host. Dell writes the service tag, which is printed on the machine, into its SKU.
2. The tray: a chassis of this System that is an enclosure, not a board in it, where it gives both serial and model. A
   serial of one of its boards does not count.
3. The product: the FRU (Assembly) of the tray, else of the zone that holds the boards, that has the machine's model or
   is named as its chassis or product.

A HGX board or a GPU that a BMC lists with the host never gives the machine its serial. Other serials are aliases:
they show that a machine with a swapped board is the same one. A chassis that cannot be read costs its own label alone.
Where the System links to it and is not labelled, or no label is found, the machine is unknown: it may have the label.
The same holds for an Assembly that cannot be read.
Source: DMTF DSP2046 (Chassis, Assembly); GB200 and GH200 in tests/redfish_trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.system import (
    chassis,
    chassis_type,
    garbled,
    host_system,
    programmed,
    required,
    serial_like,
    systems,
)
from clusterctl.formats.redfish.tree import ROOT, GarbledError, RedfishTree, Resource

_TRAYS = frozenset({"Blade", "Drawer", "Enclosure", "Other", "Rack", "RackMount", "Shelf", "Sled", "StandAlone"})
_PRODUCT_NAMES = ("chassis", "product")


@dataclass(frozen=True, slots=True)
class RedfishMachine:
    """`aliases`: the other serials that the BMC gives for it."""

    manufacturer: str
    model: str
    serial: Serial
    aliases: tuple[Serial, ...]


@dataclass(frozen=True, slots=True)
class _Label:
    """The label of the machine in one resource; empty where it has none."""

    manufacturer: str
    model: str
    serial: str


def read_machine(tree: RedfishTree) -> RedfishMachine:
    """Return the machine; `ParseError` where serial, model or manufacturer is unknown."""
    host = host_system(tree)
    serial = serial_of(tree, host)
    manufacturer, model = make_of(tree, host)
    return RedfishMachine(
        manufacturer=manufacturer or _own(tree, host, "Manufacturer"),
        model=model or _own(tree, host, "Model"),
        serial=serial,
        aliases=_aliases(tree, host, serial),
    )


def make_of(tree: RedfishTree, host: Resource) -> tuple[str, str]:
    """Return manufacturer and model; empty where they are unknown."""
    manufacturer = next((one.manufacturer for one in _labels(tree, host) if one.manufacturer), "")
    return manufacturer, next((one.model for one in _labels(tree, host) if one.model), "")


def serial_of(tree: RedfishTree, host: Resource) -> Serial:
    """Return the machine's serial, for all that read or change it; `ParseError` where it is unknown."""
    found = next((one.serial for one in _labels(tree, host) if one.serial), "")
    return Serial(found or _own(tree, host, _serial_field(host), serial_like))


def _own(tree: RedfishTree, host: Resource, name: str, valid: Callable[[str], bool] = programmed) -> str:
    """Return a text of the System; `EdgeError` where a chassis that may have it could not be read."""
    listed = tree.root.link("Chassis") or f"{ROOT}/Chassis"
    linked = host.links("Links", "Chassis")
    lost = [one for one in tree.unread.values() if one.where in (listed, *linked) or one.where.startswith(f"{listed}/")]
    if lost and not valid(host.text(name)):
        raise EdgeError(lost[0].reason, where=lost[0].where)
    return required(host, name, valid)


def _labels(tree: RedfishTree, host: Resource) -> Iterator[_Label]:
    """Yield the labels of the machine, the best first. Reads no more than is asked for."""
    _require_legible(host)
    yield _label(host)
    paths = host.links("Links", "Chassis")
    linked = tree.readable(paths)
    yield from _tray_labels(tree, host, trays := _trays(linked, host))
    if len(linked) < len(paths) or _unlabelled(tree, trays):
        return
    members = tree.members(tree.root, "Chassis", whole=False)
    units = [one for one in members if one.path not in {unit.path for unit in linked}]
    yield from _tray_labels(tree, host, trays := _trays(units, host))
    zones = [one for one in units if one.term("ChassisType") == "Zone"]
    if not _unlabelled(tree, (*trays, *zones)):
        for zone in zones:
            yield from _product(zone, host, _assemblies(tree, zone) or ())


def _require_legible(host: Resource) -> None:
    """Raise `GarbledError` where a part of a label was lost on the way: what stands elsewhere is another label.

    A System with text where Redfish has objects is no System: what it gives as serial is not the machine's.
    """
    for name in ("Status", "Links", "Boot", "Processors"):
        host.value(name, "@odata.id")
    for name in ("Manufacturer", "Model", _serial_field(host)):
        text = host.text(name)
        if garbled(text) and any(sign.isascii() and sign.isalnum() for sign in text):
            remedy = "discover it again; if it stays so, have the vendor program the field again"
            raise GarbledError(f"{text!r} is not legible", where=host.where(name), remedy=remedy)


def _tray_labels(tree: RedfishTree, host: Resource, trays: list[Resource]) -> Iterator[_Label]:
    """Yield the labels of the trays, then those of their products.

    The serial of a tray with a lost Assembly may be one of its boards: then none of the trays has a serial.
    """
    assemblies = {tray.path: _assemblies(tree, tray) or () for tray in trays}
    lost = _unlabelled(tree, trays)
    for tray in trays:
        label = _label(tray)
        boards = {item.text("SerialNumber") for item in assemblies[tray.path] if "board" in item.text("Name").lower()}
        own = label.model and label.serial not in boards and not lost
        yield _Label(label.manufacturer, label.model, label.serial if own else "")
    if not lost:
        for tray in trays:
            yield from _product(tray, host, assemblies[tray.path])


def _label(resource: Resource) -> _Label:
    maker, model, serial = (resource.text(name) for name in ("Manufacturer", "Model", _serial_field(resource)))
    return _Label(
        maker if programmed(maker) else "", model if programmed(model) else "", serial if serial_like(serial) else ""
    )


def _serial_field(resource: Resource) -> str:
    return "SKU" if resource.text("Manufacturer").lower().startswith("dell") else "SerialNumber"


def _trays(units: Iterable[Resource], host: Resource) -> list[Resource]:
    """Return the chassis of the System that are enclosures; one that it links to may leave its type out."""
    linked = host.links("Links", "Chassis")
    return [
        one
        for one in units
        if (one.path in linked and chassis_type(one) in (*_TRAYS, ""))
        or (host.path in one.links("Links", "ComputerSystems") and chassis_type(one) in _TRAYS)
    ]


def _assemblies(tree: RedfishTree, unit: Resource) -> tuple[Resource, ...] | None:
    """Return the FRUs of a chassis, none where it has no Assembly; None where the BMC does not give it."""

    def read() -> tuple[Resource, ...]:
        path = unit.link("Assembly")
        return () if path is None else tree.get(path).each("Assemblies")

    return tree.attempt(read)


def _unlabelled(tree: RedfishTree, units: Iterable[Resource]) -> bool:
    """Return whether the Assembly of a chassis is lost: it may have had the label that comes first."""
    return any(_assemblies(tree, one) is None for one in units)


def _product(unit: Resource, host: Resource, items: tuple[Resource, ...]) -> Iterator[_Label]:
    """Yield the FRU of the machine's model, else the one named as product or chassis; none where several fit."""
    labelled = list(filter(_is_labelled, items))
    models = {one.text("Model").casefold() for one in (unit, host)}
    same = [item for item in labelled if item.text("Model").casefold() in models]
    fitting = same or list(filter(_is_product, labelled))
    if len({item.text("SerialNumber") for item in fitting}) == 1:
        maker = fitting[0].text("Producer") or fitting[0].text("Vendor") or unit.text("Manufacturer")
        yield _Label(maker, fitting[0].text("Model"), fitting[0].text("SerialNumber"))


def _is_labelled(item: Resource) -> bool:
    return programmed(item.text("SerialNumber")) and programmed(item.text("Model"))


def _is_product(item: Resource) -> bool:
    name = item.text("Name").lower()
    return any(part in name for part in _PRODUCT_NAMES)


def _aliases(tree: RedfishTree, host: Resource, serial: Serial) -> tuple[Serial, ...]:
    """Return the other serials: of the System, of its trays, of other Systems; and of all FRUs in the same
    list as the product's (board and chassis, which may have no model), where the System has none.
    """
    units = tree.attempt(partial(chassis, tree)) or ()
    trays = _trays(units, host)
    serials = [
        text for one in (host, *trays, *systems(tree)) for text in (_label(one).serial, one.text("SerialNumber"))
    ]
    if not _label(host).serial:
        serials += [one.serial for one in _labels(tree, host)]
        zones = [one for one in units if one.term("ChassisType") == "Zone"]
        serials += _product_serials(_assemblies(tree, one) for one in (*trays, *zones))
    return tuple(Serial(text) for text in dict.fromkeys(serials) if programmed(text) and text != serial)


def _product_serials(assemblies: Iterable[tuple[Resource, ...] | None]) -> Iterator[str]:
    """Yield the serials of the FRUs of each assembly with a product's."""
    for items in filter(None, assemblies):
        if any(_is_labelled(item) and _is_product(item) for item in items):
            yield from (item.text("SerialNumber") for item in items)
