"""Baseline × machine: differences are reported, a missing value is no match, and nothing is guessed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Firmware
from clusterctl.fleet.settings.baseline import Baseline, Bios, BiosWish, FirmwareWish, Image, Restarts, compare
from clusterctl.fleet.settings.drift import Stand, bios_drift, drift, findings, firmware_drift, in_words, splits
from clusterctl.fleet.settings.plan import todo

IMAGE = Image("x.bin", "0" * 64)
BIOS = Bios("R.v1_0", {"Turbo": "Enabled", "Cores": 64, "Quiet": True, "Power": "On"}, {})


def bios(bios_: Bios | None, registry: str = "*", **attributes: str | int | bool) -> list[tuple[str, Stand, str]]:
    """What, stand, note."""
    found = bios_drift(Baseline("b", (BiosWish(attributes, registry),)), bios_)
    return [(one.what, one.stand, one.note) for one in found]


def firmware(wish: FirmwareWish, *found: tuple[str, str]) -> list[tuple[str, Stand, str]]:
    reported = tuple(Firmware(component, version) for component, version in found)
    drifts = firmware_drift(Baseline("b", firmware=(wish,)), reported)
    return [(one.what, one.stand, one.note) for one in drifts]


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        ("2.10", "2.9", 1),
        ("2.1", "2.1.0", 0),
        ("7.00.30.00", "7.0.30", 0),
        ("v1.2", "1.10", -1),
        ("28.39.1002", "28.39.1002", 0),
        ("A47 v2.60 (08/11/2022)", "A47 v2.70", None),
        ("2.1a", "2.1", None),
        ("", "1", None),
    ],
)
def test_versions(one: str, other: str, order: int | None) -> None:
    """By their numbers; what is no plain version is not compared."""
    assert compare(one, other) == order
    assert compare(other, one) == (None if order is None else -order)


def test_attributes() -> None:
    """Right, wrong, on its way, about to be spoilt by what waits."""
    assert bios(BIOS, Turbo="Enabled", Cores=64, Quiet=True) == [
        ("Turbo", Stand.RIGHT, ""),
        ("Cores", Stand.RIGHT, ""),
        ("Quiet", Stand.RIGHT, ""),
    ]
    assert bios(BIOS, Turbo="Disabled") == [("Turbo", Stand.WRONG, "")]
    assert bios(replace(BIOS, pending={"Turbo": "Disabled"}), Turbo="Disabled") == [("Turbo", Stand.WAITING, "")]
    assert bios(replace(BIOS, pending={"Turbo": "Disabled"}), Turbo="Enabled") == [("Turbo", Stand.WRONG, "")]


@pytest.mark.parametrize(
    ("attributes", "note"),
    [
        ({"Nonsense": "1"}, "no such attribute (registry 'R.v1_0')"),
        ({"Power": True}, "text there ('On'), the baseline true or false: put it in quotes"),
        ({"Cores": "64"}, "a number there ('64'), the baseline text: write it without quotes"),
        ({"Quiet": 1}, "true or false there ('true'), the baseline a number"),
    ],
)
def test_what_cannot_be_compared_is_unknown(attributes: dict[str, str | int | bool], note: str) -> None:
    """An attribute that is not there, and YAML's On, which is true."""
    ((_, stand, reported),) = bios(BIOS, **attributes)
    assert stand is Stand.UNKNOWN
    assert note in reported


def test_registries() -> None:
    """Names differ with them: a group counts where its registry is the machine's; with none nothing is known."""
    assert bios(BIOS, "r.*", Turbo="Enabled") == [("Turbo", Stand.RIGHT, "")]
    ((what, stand, note),) = bios(BIOS, "Other*", Turbo="Enabled")
    assert (what, stand) == ("attributes", Stand.UNKNOWN)
    assert "no group of the baseline is for the attribute registry 'R.v1_0'" in note
    assert bios(None, Turbo="Enabled") == [("Turbo", Stand.UNKNOWN, "the BMC does not report the BIOS settings")]


def test_read_only_attributes_are_reported_and_not_tried() -> None:
    """By the registry's word; right ones are right all the same."""
    fixed = replace(BIOS, read_only=frozenset({"Turbo"}))
    wanted = Baseline("b", (BiosWish({"Turbo": "Disabled", "Cores": 32}),))
    drifts = bios_drift(wanted, fixed)
    assert "does not let it be written" in in_words(drifts[0])
    assert todo(drifts).attributes == {"Cores": 32}
    assert bios(fixed, Turbo="Enabled") == [("Turbo", Stand.RIGHT, "")]


@pytest.mark.parametrize(
    ("wish", "version", "stand", "note"),
    [
        (FirmwareWish("BIOS*", "2.0", image=IMAGE), "2.0", Stand.RIGHT, ""),
        (FirmwareWish("BIOS*", "2.0", image=IMAGE), "1.9", Stand.WRONG, ""),
        (FirmwareWish("BIOS*", "2.0"), "1.9", Stand.WRONG, "the baseline names no image for it"),
        (FirmwareWish("BIOS*", "2.0", image=IMAGE), "2.1", Stand.WRONG, "it is later than the baseline"),
        (FirmwareWish("BIOS*", "2.0", image=IMAGE, downgrade=True), "2.1", Stand.WRONG, ""),
        (FirmwareWish("BIOS*", minimum="2.0", image=IMAGE), "2.1", Stand.RIGHT, ""),
        (FirmwareWish("BIOS*", minimum="2.0", image=IMAGE), "1.9.9", Stand.WRONG, ""),
        (FirmwareWish("BIOS*", minimum="2.0", image=IMAGE), "B-1", Stand.UNKNOWN, "is unknown"),
        (FirmwareWish("BIOS*", "U2", image=IMAGE), "U1", Stand.WRONG, ""),
    ],
)
def test_firmware(wish: FirmwareWish, version: str, stand: Stand, note: str) -> None:
    """Exactly this, or at least this; never taken back unasked, never without an image."""
    ((what, found, reported),) = firmware(wish, ("bios (Setup)", version), ("BMC", "9"))
    assert (what, found) == ("bios (Setup)", stand)
    assert note in reported
    assert bool(reported) == bool(note)


def test_components() -> None:
    """All that match; none is unknown; so is an inventory that could not be read."""
    nic = FirmwareWish("NIC*", "2", image=IMAGE)
    assert [stand for _, stand, _ in firmware(nic, ("NIC1", "2"), ("NIC2", "1"))] == [Stand.RIGHT, Stand.WRONG]
    assert firmware(nic, ("BMC", "1")) == [("NIC*", Stand.UNKNOWN, "the BMC lists no such component that runs")]
    (unread,) = firmware_drift(Baseline("b", firmware=(nic,)), None)
    assert unread.stand is Stand.UNKNOWN


def test_what_is_to_be_done() -> None:
    """The BMC's first, an image once however many components are wrong, one reboot where anything needs it."""
    bmc = FirmwareWish("BMC", "2", image=IMAGE, restarts=Restarts.BMC)
    nic = FirmwareWish("NIC*", "2", image=IMAGE)
    wanted = Baseline("b", (BiosWish({"Turbo": "Disabled"}),), (nic, bmc))
    reported = (Firmware("NIC1", "1"), Firmware("NIC2", "1"), Firmware("BMC", "1"))
    plan = todo(drift(wanted, BIOS, reported))
    assert (plan.bmc, plan.host, plan.attributes, plan.reboots) == ((bmc,), (nic,), {"Turbo": "Disabled"}, True)
    only = todo(firmware_drift(Baseline("b", firmware=(bmc,)), reported))
    assert (only.reboots, only.nothing) == (False, False)
    waiting = todo(bios_drift(replace(wanted, firmware=()), replace(BIOS, pending={"Turbo": "Disabled"})))
    assert (waiting.attributes, waiting.reboots) == (None, True)


@pytest.mark.parametrize(
    ("turbo", "verdict"), [("Enabled", Verdict.PASS), ("Disabled", Verdict.WARN), (1, Verdict.INCONCLUSIVE)]
)
def test_findings(turbo: str | int, verdict: Verdict) -> None:
    """One for each aspect that is asked for: drift is a warning, what is unknown is not."""
    (found,) = findings(drift(Baseline("b", (BiosWish({"Turbo": turbo}),)), BIOS, None))
    assert (found.check, found.verdict) == ("bios_baseline", verdict)
    assert bool(found.remedy) == (verdict is not Verdict.PASS)


def test_half_updated_fleets_are_named() -> None:
    """By SKU and component: what most have, and who has something else; of two halves always the same one."""
    wanted = Baseline("b", firmware=(FirmwareWish("BIOS", "2", image=IMAGE),))
    has = {"n1": "2", "n2": "1", "n3": "2", "n4": "2"}
    rows = [(name, "sku", firmware_drift(wanted, (Firmware("BIOS", version),))) for name, version in has.items()]
    (split,) = splits(rows)
    assert str(split) == "sku: BIOS: 3 of 4 have 2; others: n2 1"
    assert splits([*rows[:1], *rows[2:]]) == ()
    assert splits([("a", "x", rows[0][2]), ("b", "y", rows[1][2])]) == ()
    (half,) = splits(rows[:2])
    assert half.most == "1"
