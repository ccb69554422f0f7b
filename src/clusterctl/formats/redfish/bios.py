"""BIOS attributes: what is, what the next boot will bring, and how changes are asked for (DMTF Bios, Settings and
AttributeRegistry schemas; recorded at Dell, HPE and Supermicro).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Bios, Value
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource, normal

_SETTINGS = "@Redfish.Settings"
_APPLY_TIME = "@Redfish.SettingsApplyTime"
_ON_RESET = "OnReset"
_JOB_KIND = "BIOSConfiguration"
_JOB_OVER = frozenset({"Completed", "CompletedWithErrors", "Failed", "RebootCompleted", "RebootFailed"})


@dataclass(frozen=True, slots=True)
class BiosControl:
    """`settings` takes changes. `on_reset`: a change must name when it is applied.

    jobs       Dell's job queue, where what waits needs a job; empty elsewhere
    scheduled  there is such a job
    """

    serial: Serial
    bios: Bios
    settings: str
    etag: str
    on_reset: bool
    jobs: str = ""
    scheduled: bool = False

    def brings(self, wanted: Mapping[str, Value]) -> bool:
        """Return whether the next boot brings these, or they are there already, with what else they need."""
        there = all(same(self.bios.current.get(name), value) for name, value in wanted.items())
        waits = all(
            same(self.bios.pending.get(name, self.bios.current.get(name)), value) for name, value in wanted.items()
        )
        return waits and (there or not self.jobs or self.scheduled)

    def pends(self, wanted: Mapping[str, Value]) -> bool:
        """Return whether they wait, job or no job."""
        return all(
            same(self.bios.pending.get(name, self.bios.current.get(name)), value) for name, value in wanted.items()
        )

    def bodies(self, wanted: Mapping[str, Value]) -> tuple[Mapping[str, Any], ...]:
        """Return the bodies to PATCH, the likeliest first."""
        plain = {"Attributes": dict(wanted)}
        timed = {**plain, _APPLY_TIME: {"ApplyTime": _ON_RESET}}
        return (timed, plain) if self.on_reset else (plain,)


def same(found: Value | None, wanted: Value) -> bool:
    """Compare two values; True and 1 differ."""
    return type(found) is type(wanted) and found == wanted


def read_bios(answers: Answers) -> BiosControl | ReadRequest:
    """Return the BIOS settings. Raises `ParseError` or `EdgeError` where machine or attributes are not reported."""
    tree = RedfishTree(answers)
    try:
        return _control(tree, None)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))


def read_bios_thoroughly(answers: Answers) -> BiosControl | ReadRequest:
    """Return the same with the registry, which takes some requests and has some hundred kilobytes."""
    tree = RedfishTree(answers)
    try:
        found = _control(tree, None)
        return _control(tree, _read_only(tree, found.bios.registry))
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))


def _control(tree: RedfishTree, read_only: frozenset[str] | None) -> BiosControl:
    host = system.host_system(tree)
    serial = serial_of(tree, host)
    bios = tree.follow(host, "Bios")
    path = bios.link(_SETTINGS, "SettingsObject")
    if path is None:
        raise ParseError("the BMC names nothing that takes changes", where=bios.where(_SETTINGS, "SettingsObject"))
    settings = tree.get(path)
    current = attributes(bios)
    if not current:
        raise ParseError("the BMC reports no BIOS attribute", where=bios.where("Attributes"))
    jobs = settings.link("Oem", "Dell", "Jobs") or ""
    return BiosControl(
        serial,
        Bios(bios.text("AttributeRegistry"), current, attributes(settings), read_only),
        settings.path,
        settings.text("@odata.etag"),
        _ON_RESET in bios.texts(_SETTINGS, "SupportedApplyTimes"),
        jobs,
        bool(jobs) and _scheduled(tree, settings),
    )


def attributes(resource: Resource) -> dict[str, Value]:
    """Return the reported attributes, without those that are null."""
    found = resource.value("Attributes")
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ParseError("the attributes are no object", where=resource.where("Attributes"))
    return {str(name): value for name, value in found.items() if isinstance(value, str | int | bool)}


def _scheduled(tree: RedfishTree, settings: Resource) -> bool:
    """Return whether a job of Dell's queue will carry out what waits."""
    members = tree.members(settings, "Oem", "Dell", "Jobs")
    return any(job.text("JobType") == _JOB_KIND and job.text("JobState") not in _JOB_OVER for job in members)


def _read_only(tree: RedfishTree, registry: str) -> frozenset[str] | None:
    """Return the attributes that the registry calls read-only; None where it cannot be read."""
    try:
        body = _registry(tree, registry)
        entries = body.each("RegistryEntries", "Attributes") if body is not None else ()
        read_only = frozenset(entry.text("AttributeName") for entry in entries if entry.flag("ReadOnly"))
    except (ParseError, EdgeError):
        return None
    return read_only if entries else None


def _registry(tree: RedfishTree, registry: str) -> Resource | None:
    """Return the registry by its entry in `Registries`: its id is the registry's name, with or without its patch."""
    if not registry or not tree.root.has("Registries"):
        return None
    collection = tree.follow(tree.root, "Registries")
    path = next((path for path in collection.references("Members") if _names(path, registry)), None)
    if path is None:
        return None
    uri = _english_uri(tree.get(path))
    return tree.get(normal(uri, path)) if uri else None


def _english_uri(entry: Resource) -> str:
    """Return where the BMC has the English registry, else the one in its first language; empty where it has none."""
    places = entry.each("Location")
    english = [place for place in places if place.text("Language").lower().startswith("en")]
    return next((place.text("Uri") for place in (*english, *places)), "")


def _names(path: str, registry: str) -> bool:
    name = path.rsplit("/", 1)[-1].casefold()
    return bool(name) and (registry.casefold() == name or registry.casefold().startswith((f"{name}.", f"{name}_")))
