"""Baseline × what a machine is set to and runs: pure, one line for each attribute and component."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from clusterctl.fleet.finding import Finding, Verdict, passed, worst
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Firmware
from clusterctl.fleet.settings.baseline import Baseline, Bios, FirmwareWish, Value, compare


class Aspect(enum.Enum):
    BIOS = "bios"
    FIRMWARE = "firmware"


class Stand(enum.Enum):
    """RIGHT: as in the baseline; WAITING: right after the next boot; WRONG: differs; UNKNOWN: the BMC does not report
    it.
    """

    RIGHT = "right"
    WAITING = "waiting"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Drift:
    """One attribute or component. `pending` is what the next boot will bring, where that is not what is.

    value  of a BIOS attribute, as wanted; None for firmware
    wish   of a component; None for a BIOS attribute
    note   what an operator must know; `by_hand`: clusterctl cannot correct it, and the note has the reason
    """

    aspect: Aspect
    what: str
    found: str
    wants: str
    stand: Stand
    pending: str = ""
    note: str = ""
    by_hand: bool = False
    value: Value | None = None
    wish: FirmwareWish | None = None


def drift(baseline: Baseline, bios: Bios | None, firmware: tuple[Firmware, ...] | None) -> tuple[Drift, ...]:
    """Return the drift of all that the baseline names, firmware first. None: it could not be read."""
    return (*firmware_drift(baseline, firmware), *bios_drift(baseline, bios))


def _bios_unreported(baseline: Baseline) -> tuple[Drift, ...]:
    wanted = {name: value for wish in baseline.bios for name, value in wish.attributes.items()}
    return tuple(_unknown(name, value, "the BMC does not report the BIOS settings") for name, value in wanted.items())


def bios_drift(baseline: Baseline, bios: Bios | None) -> tuple[Drift, ...]:
    if bios is None:
        return _bios_unreported(baseline)
    wishes = [wish for wish in baseline.bios if _matches(bios.registry, wish.registry)]
    if baseline.bios and not wishes:
        note = f"no group of the baseline is for the attribute registry {bios.registry!r}"
        return (Drift(Aspect.BIOS, "attributes", "", "", Stand.UNKNOWN, note=note, by_hand=True),)
    meant: dict[str, Value] = {}
    for wish in wishes:
        meant = {**wish.attributes, **meant}
    return tuple(_attribute(name, value, bios) for name, value in meant.items())


def firmware_drift(baseline: Baseline, firmware: tuple[Firmware, ...] | None) -> tuple[Drift, ...]:
    return tuple(one for wish in baseline.firmware for one in _components(wish, firmware))


def not_right(drifts: Iterable[Drift]) -> tuple[Drift, ...]:
    return tuple(one for one in drifts if one.stand is not Stand.RIGHT)


def in_words(one: Drift) -> str:
    """Return `ProcTurboMode is Disabled, wanted Enabled (after the next boot Enabled)`."""
    if one.stand is Stand.UNKNOWN:
        return f"{one.what}: {one.note}"
    after = f" (after the next boot {one.pending})" if one.pending else ""
    note = f": {one.note}" if one.note else ""
    return f"{one.what} is {one.found}, wanted {one.wants}{after}{note}"


def shown(value: Value) -> str:
    """Return the value as YAML and JSON write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _attribute(name: str, wanted: Value, bios: Bios) -> Drift:
    if name not in bios.current:
        return _unknown(name, wanted, f"this machine's BIOS has no such attribute (registry {bios.registry!r})")
    found, pending = bios.current[name], bios.pending.get(name, bios.current[name])
    if type(found) is not type(wanted):
        note = f"the BIOS has {_kind(found)} there ({shown(found)!r}), the baseline {_kind(wanted)}: {_cure(found)}"
        return _unknown(name, wanted, note)
    fixed = bios.read_only is not None and name in bios.read_only
    stand = Stand.RIGHT if found == pending == wanted else Stand.WAITING if pending == wanted else Stand.WRONG
    return Drift(
        Aspect.BIOS,
        name,
        shown(found),
        shown(wanted),
        stand,
        pending=shown(pending) if pending != found else "",
        note="the BIOS does not let it be written: correct what it depends on"
        if fixed and stand is Stand.WRONG
        else "",
        by_hand=fixed and stand is Stand.WRONG,
        value=wanted,
    )


def _unknown(name: str, wanted: Value, note: str) -> Drift:
    return Drift(Aspect.BIOS, name, "", shown(wanted), Stand.UNKNOWN, note=note, by_hand=True, value=wanted)


def _kind(value: Value) -> str:
    kinds: Mapping[type, str] = {bool: "true or false", int: "a number"}
    return kinds.get(type(value), "text")


def _cure(found: Value) -> str:
    return "put it in quotes" if isinstance(found, str) else "write it without quotes"


def _components(wish: FirmwareWish, firmware: tuple[Firmware, ...] | None) -> Iterator[Drift]:
    if firmware is None:
        yield _unreported(wish, "the BMC's firmware inventory could not be read")
        return
    found = [one for one in firmware if _matches(one.component, wish.component)]
    if not found:
        yield _unreported(wish, "the BMC lists no such component that runs")
    for one in found:
        yield _component(wish, one)


def _component(wish: FirmwareWish, found: Firmware) -> Drift:
    order = compare(found.version, wish.version or wish.minimum)
    right = found.version == wish.version if wish.version else order is not None and order >= 0
    stand, note = (Stand.RIGHT, "") if right else _wrong_component(wish, found, order)
    return Drift(
        Aspect.FIRMWARE, found.component, found.version, wish.wants, stand, note=note, by_hand=bool(note), wish=wish
    )


def _wrong_component(wish: FirmwareWish, found: Firmware, order: int | None) -> tuple[Stand, str]:
    """Return the state of a component that is not as wished, and the reason why it cannot be corrected, if any."""
    if wish.minimum and order is None:
        return Stand.UNKNOWN, f"which of {found.version!r} and {wish.minimum!r} is later is unknown"
    if order is not None and order > 0 and not wish.downgrade:
        return (
            Stand.WRONG,
            "it is later than the baseline: it is not taken back without downgrade: true in the baseline",
        )
    return Stand.WRONG, "" if wish.image is not None else "the baseline names no image for it"


def _unreported(wish: FirmwareWish, note: str) -> Drift:
    return Drift(Aspect.FIRMWARE, wish.component, "", wish.wants, Stand.UNKNOWN, note=note, by_hand=True, wish=wish)


def _matches(text: str, pattern: str) -> bool:
    return fnmatchcase(text.casefold(), pattern.casefold())


CHECKS: Mapping[Aspect, str] = {Aspect.BIOS: "bios_baseline", Aspect.FIRMWARE: "firmware_baseline"}
_VERDICTS: Mapping[Stand, Verdict] = {
    Stand.RIGHT: Verdict.PASS,
    Stand.WAITING: Verdict.WARN,
    Stand.WRONG: Verdict.WARN,
    Stand.UNKNOWN: Verdict.INCONCLUSIVE,
}
_REMEDY = "clusterctl settings check shows all of it; settings apply corrects what it can"
_UNKNOWN = "look in the evidence for what could not be read, or correct the baseline where it names what is not there"


@dataclass(frozen=True, slots=True)
class Split:
    """Machines of one SKU that do not all run the same of one component, or have not the same of one attribute."""

    sku: str
    what: str
    most: str
    count: int
    others: tuple[tuple[str, str], ...]
    """(node, what it has)."""

    def __str__(self) -> str:
        total = self.count + len(self.others)
        named = ", ".join(f"{node} {has}" for node, has in self.others)
        return f"{self.sku}: {self.what}: {self.count} of {total} have {self.most}; others: {named}"


def verdict(drifts: Iterable[Drift]) -> Verdict:
    """Return the worst of them; INCONCLUSIVE for none."""
    return worst(_VERDICTS[one.stand] for one in drifts)


def findings(drifts: Sequence[Drift]) -> Iterator[Finding]:
    """Yield one for each aspect that the baseline names."""
    for aspect, check in CHECKS.items():
        if mine := [one for one in drifts if one.aspect is aspect]:
            yield _finding(check, mine)


def splits(rows: Iterable[tuple[str, str, Sequence[Drift]]]) -> tuple[Split, ...]:
    """Return where nodes of one SKU differ, from (node, SKU, drift); unreported settings are left out."""
    found: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for node, sku, drifts in rows:
        for one in drifts:
            if one.found:
                found[sku, one.what][node] = one.found
    return tuple(_split(sku, what, has) for (sku, what), has in found.items() if len(set(has.values())) > 1)


def _split(sku: str, what: str, has: Mapping[str, str]) -> Split:
    """Return the split; of two that are equally many, the first in order is usual: the same result each time."""
    counts = Counter(has.values())
    most = min(counts, key=lambda value: (-counts[value], value))
    return Split(sku, what, most, counts[most], tuple((node, own) for node, own in has.items() if own != most))


def _finding(check: str, drifts: Sequence[Drift]) -> Finding:
    bad = not_right(drifts)
    if not bad:
        return passed(check, f"{len(drifts)} as the baseline has them")
    judged = verdict(drifts)
    return Finding(
        check=check,
        verdict=judged,
        code=Code.SETTINGS_UNKNOWN if judged is Verdict.INCONCLUSIVE else Code.SETTINGS_DRIFT,
        cause="; ".join(map(in_words, bad)),
        measured=", ".join(f"{one.what} {one.found or 'not reported'}" for one in bad),
        expected=", ".join(f"{one.what} {one.wants}".strip() for one in bad),
        remedy=_UNKNOWN if judged is Verdict.INCONCLUSIVE else _REMEDY,
        deterministic=judged is not Verdict.INCONCLUSIVE,
    )
