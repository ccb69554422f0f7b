"""The health of a fabric's links: one finding for each link, from two readings and the limits; and mixed firmware."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from clusterctl.cabling.health.counters import Doubt
from clusterctl.cabling.health.findings import ACTIONS, FabricLabels, HealthFinding, fabric_labels
from clusterctl.cabling.health.groups import HealthGroup, group
from clusterctl.cabling.health.symptoms import (
    DOWNED,
    HealthKind,
    HealthWindow,
    Symptom,
    Unproven,
    counter_symptoms,
    errors_added,
    hot_devices,
    interval_s,
    sensor_symptoms,
    span,
    unproven,
)
from clusterctl.cabling.labels import listed, shortened
from clusterctl.cabling.mass_failure import MassFailure, mass_failure
from clusterctl.fleet.fabric.telemetry import Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.finding import Verdict, worst
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True)
class MixedFirmware:
    """Devices of one model with different versions. `odd` do not run `usual`, which may be empty."""

    model: str
    versions: tuple[tuple[str, int], ...]
    usual: str
    odd: tuple[str, ...]


def mixed(
    fabric: Fabric, telemetry: Telemetry, device: Callable[[Guid], str], port: Callable[[PortId], str], most: float
) -> Iterator[MixedFirmware]:
    """Yield the models that run more than `most` versions."""
    classes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for guid, version in telemetry.firmware.items():
        known = fabric.devices.get(guid)
        if known is not None and not known.is_aggregation:
            classes[_model(known)].append((device(guid), version))
    for end, transceiver in telemetry.transceivers.items():
        if transceiver.firmware and transceiver.part:
            classes[f"transceivers {transceiver.part}"].append((port(end), transceiver.firmware))
    for model, members in sorted(classes.items()):
        if len({version for _, version in members}) > most:
            yield _judge(model, members)


def _modules(window: HealthWindow, ports: Iterable[PortId]) -> tuple[tuple[PortId, Transceiver], ...]:
    """Return the modules that were read, by port."""
    return tuple((port, part) for port in ports if (part := window.module(port)) is not None)


def _model(device: Device) -> str:
    word = "switches" if device.kind is DeviceKind.SWITCH else "adapters"
    return f"{word} (device 0x{device.device_id:x})" if device.device_id else word


def _judge(model: str, members: Iterable[tuple[str, str]]) -> MixedFirmware:
    by_version: dict[str, list[str]] = defaultdict(list)
    for name, version in members:
        by_version[version].append(name)
    counts = sorted(((version, len(names)) for version, names in by_version.items()), key=lambda v: (-v[1], v[0]))
    usual = counts[0][0] if counts[0][1] > counts[1][1] else ""
    odd = sorted({name for version, names in by_version.items() if version != usual for name in names})
    return MixedFirmware(model, tuple(counts), usual, tuple(odd))


_MANY = 32
_ORDER = {kind: place for place, kind in enumerate(HealthKind)}


@dataclass(frozen=True, slots=True)
class FabricHealth:
    """Of `links` cables `proven` are healthy and `bad` are not; the rest is proven neither way.

    proven_ber    bit error rate (errors per bit) that healthy links stay below; None where the interval proves none
    not_measured  what the readings contain for no link
    stop          so many bad links that no single link must be repaired before the common cause is found
    groups        what findings have in common; each finding is in one group at most
    """

    links: int
    proven: int
    bad: int
    seconds: float
    proven_ber: float | None
    findings: tuple[HealthFinding, ...]
    not_measured: tuple[str, ...]
    stop: MassFailure | None = None
    groups: tuple[HealthGroup, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict; INCONCLUSIVE without any link."""
        proven = [Verdict.PASS] if self.proven else []
        return worst((*proven, *(finding.verdict for finding in self.findings)))


def judge_health(
    fabric: Fabric,
    window: HealthWindow,
    places: FabricLabels,
    earlier: Fabric | None = None,
    under_load: Mapping[frozenset[PortId], tuple[Symptom, ...]] = MappingProxyType({}),
) -> FabricHealth:
    """Return the health. `earlier` is the fabric of the first reading, if known: its links that are gone are LOST. A
    switch that is gone is one finding; its links are neither bad nor proven.

    `under_load`: further symptoms of links, by both ends.
    """
    cables = fabric.cables()
    found: list[HealthFinding] = []
    doubtful: dict[Unproven, list[Link]] = defaultdict(list)
    bad, restarted = 0, _restarted(cables, window, places)
    for link in cables:
        counted = _without_restarts(counter_symptoms(window, link, places.plain), link, restarted, places)
        sensed = sensor_symptoms(window, link, places.plain)
        symptoms = _sorted((*counted, *sensed, *under_load.get(frozenset((link.a, link.b)), ())))
        if symptoms:
            found.append(_explain(link, symptoms, places, window))
        if symptoms and symptoms[0].verdict is Verdict.FAIL:
            bad += 1
        elif reasons := unproven(window, link):
            doubtful[reasons].append(link)
    switches = lost_switches(earlier, fabric) if earlier is not None else {}
    lost = list(_lost(fabric, earlier, switches, places, window)) if earlier is not None else []
    found += lost
    found += [_switch_lost(_name_of(guid, places, earlier), count, places) for guid, count in switches.items()]
    found += _hot(window, places)
    found += _firmware(fabric, window, places)
    found += [_unproven(why, links, places, window) for why, links in doubtful.items()]
    away = sum(switches.values())
    total, broken = len(cables) + len(lost) + away, bad + len(lost)
    links = _with_gone(cables, earlier) if lost and earlier else cables
    return FabricHealth(
        links=total,
        proven=total - broken - away - sum(map(len, doubtful.values())),
        bad=broken,
        seconds=window.seconds,
        proven_ber=_proven_ber(window, cables),
        findings=tuple(sorted(found, key=lambda f: (not f.rack, f.rack, -f.verdict.rank, _ORDER[f.kind]))),
        not_measured=tuple(_not_measured(window)),
        stop=mass_failure(broken, total, window.limits.value("broken_links_max")),
        groups=group(found, links, window, places),
    )


def _restarted(cables: Iterable[Link], window: HealthWindow, places: FabricLabels) -> dict[str, int]:
    """Return the hosts of which all links, two or more, went down equally often, and the number of their links.

    Adapters may keep their counters over a restart of the host: then both ends count that the link went down.
    """
    downs: dict[str, list[int]] = defaultdict(list)
    for link in cables:
        both = [window.growth(end).of(DOWNED) for end in (link.a, link.b)]
        for end in (link.a, link.b):
            device = places.fabric.devices.get(end.guid)
            if device is not None and device.kind is not DeviceKind.SWITCH:
                downs[places.box(end.guid)].append(min(both))
    return {
        host: len(counts)
        for host, counts in downs.items()
        if len(counts) > 1 and min(counts) > 0 and max(counts) - min(counts) <= 1
    }


def _without_restarts(
    symptoms: Iterable[Symptom], link: Link, restarted: Mapping[str, int], places: FabricLabels
) -> Iterator[Symptom]:
    """Yield the symptoms; a flap of a host that was restarted is a warning."""
    host = next((box for end in (link.a, link.b) if (box := places.box(end.guid)) in restarted), None)
    for symptom in symptoms:
        if host is not None and symptom.kind is HealthKind.FLAPPING:
            text = f"{symptom.what}, as often as all {restarted[host]} links of {host}: it was restarted"
            yield Symptom(HealthKind.WENT_DOWN, Verdict.WARN, text, symptom.counters)
        else:
            yield symptom


def _sorted(symptoms: Iterable[Symptom]) -> list[Symptom]:
    """Return the worst first, and the cause before its consequences."""
    return sorted(symptoms, key=lambda symptom: (-symptom.verdict.rank, _ORDER[symptom.kind]))


def _with_gone(cables: Sequence[Link], earlier: Fabric) -> list[Link]:
    """Return the links, and then those of the earlier reading that are gone."""
    there = set(cables)
    return [*cables, *(link for link in earlier.cables() if link not in there)]


def _explain(link: Link, symptoms: list[Symptom], places: FabricLabels, window: HealthWindow) -> HealthFinding:
    """Return the finding with all symptoms, and with growth of other counters within their limits."""
    first, second = places.ordered(link)
    counters = [(port, name, count) for port in (first, second) for name, count in errors_added(window, port)]
    named = frozenset[str]().union(*(symptom.counters for symptom in symptoms))
    others = [f"{name} +{count} at {places.plain(port)}" for port, name, count in counters if name not in named]
    seen = [symptom.what for symptom in symptoms] + ([f"in addition to {listed(others)}"] if others else [])
    a, b = places.port(first), places.port(second)
    kind = symptoms[0].kind
    action = ACTIONS[kind].format(other=f"{places.at(second)}{b}")
    modules = _modules(window, (first, second))
    return HealthFinding(
        kind=kind,
        verdict=symptoms[0].verdict,
        cause=f"the link {a} – {b}: " + "; ".join(seen),
        action=f"{places.at(first)}{a}: {action}{_serials(modules, places)}",
        ends=(places.name(first), places.name(second)),
        rack=places.rack(first, second),
        counters=tuple((places.name(port), name, count) for port, name, count in counters),
        modules=tuple((places.name(port), part.part, part.serial) for port, part in modules),
    )


def _serials(modules: Iterable[tuple[PortId, Transceiver]], places: FabricLabels) -> str:
    """Return the serials of cable or transceivers as the end of an action; both ends of a cable have the same one."""
    at: dict[str, list[str]] = defaultdict(list)
    for port, part in modules:
        if part.serial:
            at[f"{part.part} serial {part.serial}".strip()].append(places.plain(port))
    named = [f"{serial} (cable)" if len(ports) > 1 else f"{serial} at {ports[0]}" for serial, ports in at.items()]
    return f"; {listed(named)}" if named else ""


def lost_switches(earlier: Fabric, now: Fabric) -> Mapping[Guid, int]:
    """Return the switches of the earlier reading that the later one does not have, each with the number of its links; a
    link between two of them counts once.

    A switch that had one link only is left out: that link may be what is lost.
    """
    away = [
        guid for guid, device in earlier.devices.items() if device.kind is DeviceKind.SWITCH and guid not in now.devices
    ]
    if not away:
        return {}
    links: dict[Guid, list[Link]] = defaultdict(list)
    for link in earlier.cables():
        for guid in {link.a.guid, link.b.guid}:
            links[guid].append(link)
    counted: set[Link] = set()
    found: dict[Guid, int] = {}
    for guid in sorted(away):
        if len(links[guid]) > 1:
            found[guid] = len(set(links[guid]) - counted)
            counted.update(links[guid])
    return found


def _name_of(guid: Guid, places: FabricLabels, earlier: Fabric | None) -> str:
    """Return the name of a switch; where only the earlier reading has it, the name that it has there."""
    if guid in places.fabric.devices or earlier is None:
        return places.device(guid)
    return fabric_labels(earlier).device(guid)


def _switch_lost(name: str, links: int, places: FabricLabels) -> HealthFinding:
    return HealthFinding(
        kind=HealthKind.SWITCH_LOST,
        verdict=Verdict.FAIL,
        cause=f"the switch {name} was in the fabric and is not any more, and {links} links with it",
        action=f"{places.labels.at(name)}{name}: check its power and its own log before any of its cables",
        devices=(name,),
        rack=places.labels.rack(name),
        links=links,
    )


def _lost(
    fabric: Fabric, earlier: Fabric, switches: Collection[Guid], places: FabricLabels, window: HealthWindow
) -> Iterator[HealthFinding]:
    now = {frozenset((link.a, link.b)) for link in fabric.cables()}
    for link in earlier.cables():
        of_switch = link.a.guid in switches or link.b.guid in switches
        if frozenset((link.a, link.b)) not in now and not of_switch:
            yield _explain(link, [Symptom(HealthKind.LOST, Verdict.FAIL, "was up and is not any more")], places, window)


def _hot(window: HealthWindow, places: FabricLabels) -> Iterator[HealthFinding]:
    """Yield a finding for each hot chip: it may cause errors on many links."""
    by_device: dict[Guid, list[Symptom]] = defaultdict(list)
    for guid, symptom in hot_devices(window, places.device):
        by_device[guid].append(symptom)
    for guid, symptoms in by_device.items():
        name, box = places.device(guid), places.box(guid)
        yield HealthFinding(
            kind=_sorted(symptoms)[0].kind,
            verdict=Verdict.FAIL,
            cause="; ".join(symptom.what for symptom in _sorted(symptoms)),
            action=f"{places.labels.at(box)}{name}: check its fans, its airflow and the intake temperature",
            devices=(name,),
            rack=places.labels.rack(box),
            links=0,
        )


def _firmware(fabric: Fabric, window: HealthWindow, places: FabricLabels) -> Iterator[HealthFinding]:
    most = window.limits.value("firmware_versions_max")
    for found in mixed(fabric, window.after, places.device, places.port, most):
        counts = ", ".join(f"{count} × {version}" for version, count in found.versions)
        target = f"install {found.usual}" if found.usual else "choose one version, and install it on all"
        yield HealthFinding(
            kind=HealthKind.MIXED_FIRMWARE,
            verdict=Verdict.WARN,
            cause=f"{found.model} run {len(found.versions)} firmware versions: {counts}",
            action=f"{shortened(found.odd)}: {target}",
            devices=found.odd,
            links=0,
        )


_DOUBTS = {
    Doubt.NOT_READ: "counters were not read twice",
    Doubt.CLEARED: "counters were cleared in between (by hand, or the device restarted)",
    Doubt.STOPPED: "counters are at their maximum and count no further",
}


def _unproven(why: Unproven, links: list[Link], places: FabricLabels, window: HealthWindow) -> HealthFinding:
    reasons = sorted(_DOUBTS[doubt] for doubt in why.doubts)
    if why.needed_s is not None:
        ber = window.limits.value("symbol_ber_max")
        reasons.append(f"{span(window.seconds)} are too short: a BER of {ber:g} takes {span(why.needed_s)} to prove")
    named = [f"{places.port(a)} – {places.port(b)}" for a, b in map(places.ordered, links)]
    return HealthFinding(
        kind=HealthKind.UNMEASURED,
        verdict=Verdict.INCONCLUSIVE,
        cause=f"{len(links)} link{'s are' if len(links) > 1 else ' is'} not proven healthy: {'; '.join(reasons)}",
        action=f"measure again, with nothing cleared or restarted in between: {shortened(named, 3)}",
        ends=tuple(places.name(end) for link in links for end in places.ordered(link)) if len(links) <= _MANY else (),
        links=len(links),
    )


def _proven_ber(window: HealthWindow, links: Iterable[Link]) -> float | None:
    """Return the strictest level for which the interval was long enough on every link."""
    cables = tuple(links)
    for level in ("goal", "max"):
        if cables and all(window.seconds >= interval_s(window.limits, link, level) for link in cables):
            return window.limits.value(f"symbol_ber_{level}")
    return None


def _not_measured(window: HealthWindow) -> Iterator[str]:
    after = window.after
    modules = after.transceivers.values()
    measured = {
        "error counters": window.before.counters and after.counters,
        "effective bit error rates": any(rates.effective is not None for rates in after.error_rates.values()),
        "temperatures of transceivers": any(module.temperature_c is not None for module in modules),
        "temperatures of switches and adapters": after.temperatures,
        "firmware of transceivers": any(module.firmware for module in modules),
        "firmware of switches and adapters": after.firmware,
    }
    yield from (what for what, found in measured.items() if not found)
