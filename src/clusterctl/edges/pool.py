"""Publishes the gold pool as a JSON file for schedulers and operators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.ports import Clock


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """The group `gold` for Ansible, `{gold: {hosts: {NAME: {ansible_host: ADDRESS}}}}`, replaced whole or not at all.

    Source: https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html
    """

    file: Path

    def publish(self, gold: Mapping[str, str]) -> None:
        hosts = {name: {"ansible_host": address} if address else {} for name, address in sorted(gold.items())}
        content = yaml.safe_dump({"gold": {"hosts": hosts}}, sort_keys=False)
        head = "# Written by clusterctl whenever a node becomes gold or ceases to be: changes by hand are lost.\n"
        with disk_explained("the gold inventory cannot be published", self.file):
            write_whole(self.file, (head + content).encode(), mode=0o644, over=True)


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
        content = json.dumps({**head, "gold": nodes}, indent=1) + "\n"
        with disk_explained("the gold pool cannot be published", self.file):
            write_whole(self.file, content.encode(), mode=0o644, over=True)

    def lacks(self, names: Iterable[str]) -> frozenset[str]:
        """Return all of them before the first publication; none where what was published cannot be read."""
        try:
            document = json.loads(self.file.read_text(encoding="utf-8"))
            published = {node["name"] for node in document["gold"]}
        except FileNotFoundError:
            return frozenset(names)
        except (OSError, ValueError, KeyError, TypeError):  # another program wrote this
            return frozenset()
        return frozenset(names) - published
