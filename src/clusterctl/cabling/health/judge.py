"""Fleets updated half-way: of each model, the versions that run, and the devices that are the odd ones out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from clusterctl.cabling.health.findings import ACTIONS, HealthFinding, Places
from clusterctl.cabling.health.symptoms import (
    HealthKind,
    Symptom,
    Window,
    counted,
    doubts,
    errors_added,
    hot_devices,
    interval_s,
    told,
)
from clusterctl.cabling.labels import listed, shortened
from clusterctl.cabling.mass_failure import too_broken
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.finding import Verdict, worst
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True)
class MixedFirmware:
    """`odd`: names of those that do not run `usual` (empty where no version is the usual one: then all are named)."""

    model: str
    versions: tuple[tuple[str, int], ...]
    usual: str
    odd: tuple[str, ...]


def mixed(
    fabric: Fabric, telemetry: Telemetry, device: Callable[[Guid], str], port: Callable[[PortId], str], most: float
) -> Iterator[MixedFirmware]:
    """Models of which more than `most` versions run."""
    classes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for guid, version in telemetry.firmware.items():
        known = fabric.devices.get(guid)
        if known is not None and not known.is_aggregation:
            word = "switches" if known.kind is DeviceKind.SWITCH else "adapters"
            model = f" (device 0x{known.device_id:x})" if known.device_id else ""
            classes[word + model].append((device(guid), version))
    for end, transceiver in telemetry.transceivers.items():
        if transceiver.firmware and transceiver.part:
            classes[f"transceivers {transceiver.part}"].append((port(end), transceiver.firmware))
    for model, members in sorted(classes.items()):
        if len({version for _, version in members}) > most:
            yield _judge(model, members)


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
class Health:
    """`links` cables were looked at, `proven` of them are healthy, `bad` are not; the rest is not proven either way.

    `proven_ber`: the bit error rate (errors per bit) that healthy links are proven to stay below; None where the
    interval proves none. `not_measured`: what the readings do not tell of any link. `stop`: why the whole fabric shall
    be left alone until somebody has looked; empty where nothing speaks against mending link by link.
    """

    links: int
    proven: int
    bad: int
    seconds: float
    proven_ber: float | None
    findings: tuple[HealthFinding, ...]
    not_measured: tuple[str, ...]
    stop: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst; INCONCLUSIVE where no link was looked at."""
        proven = [Verdict.PASS] if self.proven else []
        return worst((*proven, *(finding.verdict for finding in self.findings)))


def judge_health(fabric: Fabric, window: Window, places: Places, earlier: Fabric | None = None) -> Health:
    """`earlier` is the fabric of the first reading, where that one tells it: links that it had are missed."""
    cables = fabric.cables()
    found: list[HealthFinding] = []
    unproven: dict[str, list[Link]] = defaultdict(list)
    ill = bad = 0
    for link in cables:
        symptoms = _sorted((*counted(window, link, places.plain), *told(window, link, places.plain)))
        if symptoms:
            found.append(_explain(link, symptoms, places, window))
        if symptoms and symptoms[0].verdict is Verdict.FAIL:
            bad += 1
        elif reasons := doubts(window, link):
            ill += 1
            unproven["; ".join(sorted(reasons))].append(link)
    lost = list(_lost(fabric, earlier, places, window)) if earlier is not None else []
    found += lost
    found += _hot(window, places)
    found += _firmware(fabric, window, places)
    found += [_unproven(why, links, places) for why, links in unproven.items()]
    total, broken = len(cables) + len(lost), bad + len(lost)
    return Health(
        links=total,
        proven=total - broken - ill,
        bad=broken,
        seconds=window.seconds,
        proven_ber=_proven_ber(window, cables),
        findings=tuple(sorted(found, key=lambda f: (not f.rack, f.rack, -f.verdict.rank, _ORDER[f.kind]))),
        not_measured=tuple(_not_measured(window)),
        stop=too_broken(broken, total, window.limits.value("broken_links_max")),
    )


def _sorted(symptoms: Iterable[Symptom]) -> list[Symptom]:
    """The worst first; of equally bad ones the cause of the others."""
    return sorted(symptoms, key=lambda symptom: (-symptom.verdict.rank, _ORDER[symptom.kind]))


def _explain(link: Link, symptoms: list[Symptom], places: Places, window: Window) -> HealthFinding:
    """The symptoms, and what else its ends counted, though within limits."""
    first, second = places.ordered(link)
    counters = [(port, name, count) for port in (first, second) for name, count in errors_added(window, port)]
    named = frozenset[str]().union(*(symptom.counters for symptom in symptoms))
    others = [f"{name} +{count} at {places.plain(port)}" for port, name, count in counters if name not in named]
    seen = [symptom.what for symptom in symptoms] + ([f"besides {listed(others)}"] if others else [])
    a, b = places.port(first), places.port(second)
    kind = symptoms[0].kind
    return HealthFinding(
        kind=kind,
        verdict=symptoms[0].verdict,
        cause=f"the link {a} – {b}: " + "; ".join(seen),
        action=f"{places.at(first)}{a}: {ACTIONS[kind].format(other=f'{places.at(second)}{b}')}",
        ends=(places.name(first), places.name(second)),
        rack=places.rack(first, second),
        counters=tuple((places.name(port), name, count) for port, name, count in counters),
    )


def _lost(fabric: Fabric, earlier: Fabric, places: Places, window: Window) -> Iterator[HealthFinding]:
    now = {frozenset((link.a, link.b)) for link in fabric.cables()}
    for link in earlier.cables():
        if frozenset((link.a, link.b)) not in now:
            yield _explain(link, [Symptom(HealthKind.LOST, Verdict.FAIL, "was up and is not any more")], places, window)


def _hot(window: Window, places: Places) -> Iterator[HealthFinding]:
    """A hot chip is a finding of its own: it may be what makes many links ill."""
    by_device: dict[Guid, list[Symptom]] = defaultdict(list)
    for guid, symptom in hot_devices(window, places.device):
        by_device[guid].append(symptom)
    for guid, symptoms in by_device.items():
        name, box = places.device(guid), places.box(guid)
        yield HealthFinding(
            kind=_sorted(symptoms)[0].kind,
            verdict=Verdict.FAIL,
            cause="; ".join(symptom.what for symptom in _sorted(symptoms)),
            action=f"{places.words.at(box)}{name}: check its fans, its air path and the room's",
            devices=(name,),
            rack=places.words.rack(box),
            links=0,
        )


def _firmware(fabric: Fabric, window: Window, places: Places) -> Iterator[HealthFinding]:
    most = window.limits.value("firmware_versions_max")
    for found in mixed(fabric, window.after, places.device, places.port, most):
        counts = ", ".join(f"{count} × {version}" for version, count in found.versions)
        target = f"bring them to {found.usual}" if found.usual else "decide on one version, and bring all to it"
        yield HealthFinding(
            kind=HealthKind.MIXED_FIRMWARE,
            verdict=Verdict.WARN,
            cause=f"{found.model} run {len(found.versions)} firmware versions: {counts}",
            action=f"{shortened(found.odd)}: {target}",
            devices=found.odd,
            links=0,
        )


def _unproven(why: str, links: list[Link], places: Places) -> HealthFinding:
    named = [f"{places.port(a)} – {places.port(b)}" for a, b in map(places.ordered, links)]
    return HealthFinding(
        kind=HealthKind.UNMEASURED,
        verdict=Verdict.INCONCLUSIVE,
        cause=f"{len(links)} link{'s are' if len(links) > 1 else ' is'} not proven healthy: {why}",
        action=f"measure again, with nothing cleared or restarted in between: {shortened(named, 3)}",
        ends=tuple(places.name(end) for link in links for end in places.ordered(link)) if len(links) <= _MANY else (),
        links=len(links),
    )


def _proven_ber(window: Window, links: Iterable[Link]) -> float | None:
    """The strictest level that every link was watched long enough for."""
    cables = tuple(links)
    for level in ("goal", "max"):
        if cables and all(window.seconds >= interval_s(window.limits, link, level) for link in cables):
            return window.limits.value(f"symbol_ber_{level}")
    return None


def _not_measured(window: Window) -> Iterator[str]:
    readings = window.before, window.after
    if not all(reading.counters for reading in readings):
        yield "error counters"
    if not any(rates.effective is not None for rates in window.after.error_rates.values()):
        yield "effective bit error rates"
    if not any(found.temperature_c is not None for found in window.after.transceivers.values()):
        yield "temperatures of transceivers"
    if not window.after.temperatures:
        yield "temperatures of switches and adapters"
    if not any(found.firmware for found in window.after.transceivers.values()):
        yield "firmware of transceivers"
    if not window.after.firmware:
        yield "firmware of switches and adapters"
