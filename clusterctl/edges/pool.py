"""Publishes the gold pool as a JSON file that schedulers and people read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Clock


@dataclass(frozen=True, slots=True)
class FilePool:
    """`{"site":…, "simulated":…, "at":…, "gold":[{"name":…, "address":…}]}`, replaced whole or not at all."""

    file: Path
    site: str
    simulated: bool
    clock: Clock

    def publish(self, gold: Mapping[str, str]) -> None:
        nodes = [{"name": name, "address": address} for name, address in sorted(gold.items())]
        head = {"site": self.site, "simulated": self.simulated, "at": self.clock.now().isoformat()}
        part = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        try:
            part.write_text(json.dumps({**head, "gold": nodes}, indent=1) + "\n", encoding="utf-8")
            part.replace(self.file)
        except OSError as error:
            raise EnvironmentBrokenError(
                f"the gold pool cannot be published: {error.strerror}",
                where=str(self.file),
                remedy="make the folder writable, then run clusterctl admit; the journal has what was decided",
            ) from None
