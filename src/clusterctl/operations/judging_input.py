"""What `burnin judge` reads: recordings in a folder, and the limits of the site, or the shipped ones without a site.

A bare answer, NODE.json as the node printed it, is completed by what the site's journal knows of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from clusterctl.edges.site import contents, load_site
from clusterctl.edges.site.skus import read_skus
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import parse_yaml
from clusterctl.operations.context import open_site
from clusterctl.operations.documents import as_usage, content
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.recordings.recording import Recording, parse_recording
from clusterctl_burnin.recordings.rejudge import Kind
from clusterctl_burnin.suites.suite import Suite, shipped_suite

EXPLAINED = "docs/how-to/burnin-judge.md"


def recordings_in(folder: Path) -> tuple[Path, ...]:
    """Every NODE.json of the folder and NODE/recording.json below it, by name. Raises UsageError."""
    files = sorted([*folder.glob("*.json"), *folder.glob("*/recording.json")])
    if not files:
        remedy = f"put a recording of each node into it, as {EXPLAINED} shows"
        raise UsageError("holds no recording", where=str(folder), remedy=remedy)
    return tuple(files)


def read_recording(file: Path, owner: Callable[[str], Mapping[str, object]]) -> Recording:
    """Raises UsageError naming the file."""
    with as_usage():
        return parse_recording(content(file), where=str(file), owner=partial(owner, _node(file)))


def _node(file: Path) -> str:
    return file.stem if file.stem != "recording" else file.parent.name


class Judges:
    """By which SKU's limits a recording is judged, read when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._site = load_site(folder) if (folder / "site.yml").exists() else None
        self._folder = folder
        self.kinds: dict[str, Kind] = {}
        if self._site is not None:
            self.kinds |= {sku.name: Kind(sku, contents.limits(self._site, sku.limits)) for sku in self._site.skus}

    @property
    def suite(self) -> Suite:
        return contents.suite(self._site) if self._site is not None else shipped_suite()

    def kind(self, sku: str, file: Path) -> Kind:
        """Raises UsageError naming the file."""
        if sku in self.kinds:
            return self.kinds[sku]
        if self._site is not None:
            remedy = f"the site's are {', '.join(sorted(self.kinds))}"
            raise UsageError(f"the site has no SKU {sku!r}", where=f"{file}: sku", remedy=remedy)
        try:
            (found,) = read_skus(self._folder, (sku,), parse_yaml(f"skus: [{sku!r}]", str(file)))
        except UsageError as error:
            raise UsageError(error.message, where=f"{file}: sku", remedy=error.remedy) from error
        self.kinds[sku] = Kind(found, shipped_limits(found.limits))
        return self.kinds[sku]

    def owner(self, node: str) -> Mapping[str, object]:
        """What the journal knows of the node that a bare answer is from. Raises UsageError."""
        if self._site is None:
            remedy = "name the site that knows it (--site)"
            raise UsageError("holds a node's answer and not whose it is", where=f"{node}.json", remedy=remedy)
        state = open_site(self._folder).node(node)
        inventory = {} if state.inventory is None else {"inventory": inventory_to_data(state.inventory)}
        return {"version": 1, "node": node, "serial": state.serial or "", "sku": state.sku, **inventory}
