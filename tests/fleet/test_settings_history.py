"""What the journal remembers of settings is of this machine, of this image, and no more than was seen."""

from __future__ import annotations

import pytest

from clusterctl.fleet.acts import Act, ActResult, FlashDetails, FlashState, Intent, PowerDetails
from clusterctl.fleet.settings.baseline import FirmwareWish, Image
from clusterctl.fleet.settings.history import Flash, Memory, remember

SHA, OTHER = "a" * 64, "b" * 64


def sent(seq: int, result: ActResult | None = None, *, target: str = "S1", component: str = "BMC") -> Intent:
    details = FlashDetails(
        component=component, version="2.0", sha256=SHA, state=FlashState.FOLLOWING, before=("/t/1",), tasks=("/t/2",)
    )
    return Intent(Act.SETTINGS_FIRMWARE, target, seq, details, result)


def reboot(seq: int, result: ActResult | None = None, *, done: int = 0, was_on: bool = True) -> Intent:
    return Intent(Act.SETTINGS_REBOOT, "S1", seq, PowerDetails(was_on=was_on), result, done=done)


def wish(sha256: str | None) -> FirmwareWish:
    image = None if sha256 is None else Image(file="bmc.bin", sha256=sha256)
    return FirmwareWish(component="BMC", version="2.0", image=image)


def test_acts_on_another_machine_do_not_count() -> None:
    """The machine that stood there before has another serial."""
    assert remember((sent(4, target="S0"),), "S1") == Memory()
    assert list(remember((sent(4, target="S0"), sent(5, component="BIOS")), "S1").flashes) == ["BIOS"]


@pytest.mark.parametrize(
    ("result", "state"),
    [(None, FlashState.FOLLOWING), (ActResult.DONE, FlashState.OVER), (ActResult.FAILED, FlashState.FAILED),
     (ActResult.UNKNOWN, FlashState.FAILED)],
)  # fmt: skip
def test_a_flash_is_as_far_as_its_last_result(result: ActResult | None, state: FlashState) -> None:
    flash = Flash(SHA, "2.0", state, frozenset({"/t/1"}), ("/t/2",))
    assert remember((sent(4, result),), "S1") == Memory({"BMC": flash})
    assert not flash.rebooted


@pytest.mark.parametrize(("done", "rebooted"), [(0, False), (3, False), (4, False), (5, True)])
def test_only_a_boot_after_the_image_was_sent_counts(done: int, rebooted: bool) -> None:
    """The event with which the reboot was done is later than the one that intended the flash."""
    memory = remember((sent(4), reboot(2, ActResult.DONE, done=done)), "S1")
    assert memory.flashes["BMC"].rebooted is rebooted


def test_without_a_reboot_none_counts() -> None:
    """Also for the very first event of a journal."""
    assert not remember((sent(0),), "S1").flashes["BMC"].rebooted
    assert not remember((sent(1),), "S1").flashes["BMC"].rebooted


@pytest.mark.parametrize(
    ("result", "was_on", "was"),
    [(None, True, "on"), (None, False, "off"), (ActResult.FAILED, True, "on"), (ActResult.DONE, True, "")],
)
def test_the_power_before_a_reboot_that_is_not_over(result: ActResult | None, was_on: bool, was: str) -> None:
    assert remember((reboot(2, result, was_on=was_on),), "S1").was == was


def test_a_flash_is_of_one_image() -> None:
    """Another image of the same component was not sent; a wish without an image sends none."""
    memory = remember((sent(4),), "S1")
    assert memory.of(wish(SHA)) == memory.flashes["BMC"]
    assert memory.of(wish(OTHER)) is None
    assert memory.of(wish(None)) is None
    assert Memory().of(wish(SHA)) is None
