"""What one machine gets: its boot files with a fresh token, and the documents that only it may fetch."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from clusterctl.edges.pxe.attempt import Attempt, AttemptState, BootFiles, Payload
from clusterctl.edges.pxe.desk import new_token
from clusterctl.edges.pxe.settings import PxeSettings
from clusterctl.ports import Clock, InstallTarget

NO_TOKEN = "0" * 64
"""Stands where a document is made only to see that it can be."""


class Outfit(Protocol):
    """A way to install: what a machine boots, and what it may fetch."""

    def check(self) -> None:
        """Raise `UsageError` where what shall be installed is not in the boot folder."""
        ...

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, Payload]: ...

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        """By name, or by name and card (`desk.for_card`). Raises `UsageError` where the machine cannot have them."""
        ...


@dataclass(frozen=True, slots=True)
class Armoury:
    """Prepares attempts, each with a token of its own."""

    settings: PxeSettings
    outfit: Outfit
    clock: Clock

    def check(self, target: InstallTarget | None = None) -> None:
        """Raise `UsageError` where something is missing for installing at all, or for installing this machine."""
        self.outfit.check()
        if target is not None:
            self.outfit.documents(target, NO_TOKEN)

    def arm(self, target: InstallTarget) -> tuple[Attempt, Mapping[str, bytes]]:
        """A fresh attempt and its documents; nothing is kept yet."""
        token = new_token()
        boot, payload = self.outfit.boot(target, token)
        documents = self.outfit.documents(target, token)
        attempt = Attempt(
            node=target.name,
            state=AttemptState.ARMED,
            serial=target.serial,
            macs=target.macs,
            disk=target.disk,
            id=secrets.token_hex(4),
            token=token,
            method=self.settings.method.value,
            boot=boot,
            payload=payload,
            documents=tuple(documents),
            at=self.clock.now(),
        )
        return attempt, documents
