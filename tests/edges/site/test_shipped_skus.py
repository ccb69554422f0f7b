"""Shipped SKUs: complete but for what is ordered, distinct from each other, with limits that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.resources import resource
from clusterctl.edges.site.skus import read_skus
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import parse_yaml
from clusterctl_burnin.package_data import names_in, text_of

FILES = sorted(resource("skus").glob("*.yml"))
ORDERED = {
    "hca_count": 8,
    "hca_model": "ConnectX-7",
    "hca_rate_gbps": 400,
    "gpu_count": 4,
    "memory_gib": 1024,
    "data_drive_count": 4,
    "root_disk": {"max_gb": 500},
}
"""What a site writes for a field that a shipped file leaves open."""
SITE = parse_yaml("skus: []", "site.yml")


def decided(folder: Path, file: Path) -> str:
    """Write a site's own copy without open fields; return its name."""
    data = yaml.safe_load(file.read_text())
    data |= {name: ORDERED[name] for name, value in data.items() if value is None}
    own = folder / "skus" / file.name
    own.parent.mkdir(exist_ok=True)
    own.write_text(yaml.safe_dump(data))
    return file.stem


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_site_decides_what_is_ordered_and_nothing_else(file: Path, tmp_path: Path) -> None:
    """As shipped, the error names the open fields; with them decided, the SKU is whole."""
    undecided = [name for name, value in yaml.safe_load(file.read_text()).items() if value is None]
    if undecided:
        with pytest.raises(UsageError, match=f"not decided yet: {', '.join(undecided)}"):
            read_skus(tmp_path, (file.stem,), SITE)
    (sku,) = read_skus(tmp_path, (decided(tmp_path, file),), SITE)
    assert sku.name == file.stem
    assert set(undecided) <= ORDERED.keys()


def test_a_site_may_have_all_of_them(tmp_path: Path) -> None:
    """No two shipped SKUs fit one machine."""
    names = tuple(decided(tmp_path, file) for file in FILES)
    assert len(read_skus(tmp_path, names, SITE)) == len(FILES)


NAMES = ("name", "manufacturer", "model", "gpu_model", "limits")
"""Fields that are what the file is about, not figures."""
SOURCE = re.compile(
    r"MLCommons \w+_results_v\d|NVIDIA/libredfish tests/|user guide|technical guide|product page|BOSS-N1|shelves"
)
UNSOURCED = re.compile(r"\bexample\b|\bas ordered\b|no public figure|not known|\bTODO\b|\?", re.IGNORECASE)
"""Words of a field that no source decides."""


def fields(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield field, value and comment of each line."""
    for line in text.splitlines():
        if not line.startswith("#"):
            content, _, comment = line.partition("#")
            field, _, value = content.partition(":")
            yield field.strip(), value.strip(), comment.strip()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_figure_names_its_source_or_is_open(file: Path) -> None:
    """Counts, rates, sizes and models are cited, by themselves or as the line above, or left open with the reason."""
    cited = False
    for field, value, comment in fields(file.read_text()):
        if field in NAMES:
            continue
        if value == "null":
            assert comment, f"{field} is open, and no comment names what decides it"
            cited = cited or bool(SOURCE.search(comment))
            continue
        cited = bool(SOURCE.search(comment)) or (cited and comment.startswith("likewise"))
        assert cited, f"{field}: {value} has no source: {comment!r}"
        assert not UNSOURCED.search(comment), f"{field}: {value} is called {comment!r}"


def test_an_invented_figure_is_found() -> None:
    """A figure without a comment, with one that is no source, or like a line above without a source."""
    cases = ["psus: 6\n", "psus: 6  # an example of an order\n", "psus: 6  # likewise\n", "psus: 6  # usual\n"]
    for text in cases:
        (_, _, comment), *_ = fields(text)
        assert not SOURCE.search(comment)


@pytest.mark.parametrize("name", [*names_in("limits", suffix=".yml"), *names_in("limits/fabric", suffix=".yml")])
def test_each_shipped_limit_has_a_source_for_its_figure(name: str) -> None:
    """A figure never has the words for an open one; an open one has its reason."""
    folder = "limits" if name in names_in("limits", suffix=".yml") else "limits/fabric"
    data = yaml.safe_load(text_of(f"{folder}/{name}.yml"))
    entries = {**data["limits"], **data.get("versions", {})}
    assert entries
    for limit, entry in entries.items():
        assert len(entry["source"].split()) >= 3, f"{limit}: {entry['source']!r}"
        if entry["value"] is not None:
            assert not UNSOURCED.search(entry["source"]), f"{limit}: {entry['source']!r}"
