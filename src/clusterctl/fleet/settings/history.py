"""What the journal remembers of settings that were being applied when a run ended: pure, from a node's intents.

An act stays open until it is over: `sending` (it is unknown whether the BMC accepted it), then `following` (it did).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.acts import Act, ActResult, FlashDetails, FlashState, Intent, Intents, PowerDetails, intent_of
from clusterctl.fleet.settings.baseline import FirmwareWish


@dataclass(frozen=True, slots=True)
class Flash:
    """The last time that an image was sent to one kind of component.

    before    the BMC's tasks just before it was sent: any other is younger
    tasks     those that it became
    rebooted  the machine went through a boot that was meant for it
    """

    sha256: str
    version: str
    step: FlashState
    before: frozenset[str] = frozenset()
    tasks: tuple[str, ...] = ()
    rebooted: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """`flashes` by component pattern. `was`: the machine's power before a reboot that is not over; empty: none is."""

    flashes: Mapping[str, Flash] = field(default_factory=dict)
    was: str = ""

    def of(self, wish: FirmwareWish) -> Flash | None:
        """Return the flash of this very image; None where it was not sent."""
        found = self.flashes.get(wish.component)
        return found if found and wish.image and found.sha256 == wish.image.sha256 else None


def remember(intents: Intents, serial: str) -> Memory:
    """Return what a node's intents record of its settings; an act on another machine in its place does not count."""
    mine = tuple(intent for intent in intents if intent.target == serial)
    reboot = intent_of(mine, Act.SETTINGS_REBOOT)
    was, booted = "", 0
    if reboot is not None:
        booted = reboot.done
        if isinstance(reboot.details, PowerDetails) and reboot.result is not ActResult.DONE:
            was = "on" if reboot.details.was_on else "off"
    flashes = {
        sent.component: Flash(
            sent.sha256, sent.version, _state(intent, sent), frozenset(sent.before), sent.tasks, booted > intent.seq
        )
        for intent in mine
        if isinstance(sent := intent.details, FlashDetails)
    }
    return Memory(flashes, was)


def _state(intent: Intent, sent: FlashDetails) -> FlashState:
    if intent.open:
        return sent.state
    return FlashState.OVER if intent.result is ActResult.DONE else FlashState.FAILED
