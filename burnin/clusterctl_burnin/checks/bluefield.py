"""bluefield: the BlueField cards are in the mode, with the firmware and the PCIe link that the SKU names.

A card in DPU mode lets nothing through to the host before its own system has started, and passes all traffic through
its virtual switch; one in NIC mode is an adapter of the host. A card whose mode changes at the next power cycle fails:
what was measured would not be what jobs get. Without `bluefields` in the SKU nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import BlueFields
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.infiniband.bluefields import BlueField, parse_bluefields
from clusterctl_burnin.check import Area, Check, Expected, inconclusive, known
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

BLUEFIELDS = Probe("bluefields", ("bluefields",), timeout=60.0, role="ib_tools")
_NAME = "bluefield"
_ENGINE = {"nic": 1, "dpu": 0}


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    wanted = expected.sku.bluefields
    if wanted is None:
        yield not_applicable(_NAME, "the SKU names no BlueField cards")
        return
    cards = parse_bluefields(readings.text(BLUEFIELDS))
    found = [*_number(cards, wanted), *(finding for card in cards for finding in _card(card, wanted))]
    yield from found or (passed(_NAME, "the BlueField cards are as the SKU names them", measured=_described(cards)),)


def _described(cards: tuple[BlueField, ...]) -> str:
    return ", ".join(f"{card.model}, mode {card.mode}, {card.firmware}, {card.link}" for card in cards) or "none"


def _number(cards: tuple[BlueField, ...], wanted: BlueFields) -> Iterator[Finding]:
    if len(cards) != wanted.count:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.BLUEFIELD_COUNT,
            cause=f"the PCI bus has {len(cards)} BlueField cards, the SKU {wanted.count}",
            measured=Quantity(len(cards), "cards"),
            expected=exactly(wanted.count, "cards"),
            remedy="power off, reseat the card that is missing; replace it if it stays away; or correct the SKU",
        )


def _card(card: BlueField, wanted: BlueFields) -> Iterator[Finding]:
    for judge in (_mode, _firmware, _link):
        try:
            yield from judge(card, wanted)
        except UnmeasuredError as error:
            yield inconclusive(_NAME, error, card.address)


def _mode(card: BlueField, wanted: BlueFields) -> Iterator[Finding]:
    if wanted.mode is None:
        return
    if card.mode is None:
        why = card.error or "its settings name no mode"
        raise UnmeasuredError(
            f"the mode of the card is not known: {why}",
            remedy=f"run mlxconfig -d {card.address} -e query as root; a card in zero-trust mode refuses it",
        )
    now, later = card.mode, card.next_mode or card.mode
    if now == later == wanted.mode:
        return
    change = f"mlxconfig -d {card.address} set INTERNAL_CPU_OFFLOAD_ENGINE={_ENGINE[wanted.mode]}, then "
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.BLUEFIELD_MODE,
        subject=card.address,
        cause="the card is in another mode than the SKU's"
        if now != wanted.mode
        else "the next power cycle changes the card's mode",
        measured=now if now == later else f"{now}, {later} after the next power cycle",
        expected=wanted.mode,
        remedy=f"{change if later != wanted.mode else ''}power the machine off and on (a warm reboot is not enough)",
    )


def _firmware(card: BlueField, wanted: BlueFields) -> Iterator[Finding]:
    if not wanted.firmware:
        return
    if _numbers(known(card.firmware, "the firmware of the card")) < _numbers(wanted.firmware):
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.BLUEFIELD_FIRMWARE,
            subject=card.address,
            cause="the card's firmware is older than the SKU's",
            measured=card.firmware or "",
            expected=f"{wanted.firmware} or later",
            remedy=f"install firmware {wanted.firmware} or later on the card, then power the machine off and on",
        )


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    if not all(part.isdecimal() and len(part) <= 9 for part in parts):
        raise UnmeasuredError(f"{version[:40]!r} is no firmware version", remedy="query the card with mstflint")
    return tuple(int(part) for part in parts)


def _link(card: BlueField, wanted: BlueFields) -> Iterator[Finding]:
    link = known(card.link, "the PCIe link of the card")
    full = known(card.full_link, "the PCIe link that the card can have")
    speed, width = wanted.link_gts or full.speed, wanted.link_width or full.width
    if link.speed < speed or link.width < width:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.PCIE_LINK_POOR,
            subject=card.address,
            cause="the card's PCIe link is slower or narrower than it should be",
            measured=str(link),
            expected=f"{speed:g} GT/s ×{width}",
            remedy="power off, reseat the card and its riser; replace the card if the link stays poor",
        )


CHECK = Check(_NAME, (BLUEFIELDS,), _judge, area=Area.INFINIBAND)
