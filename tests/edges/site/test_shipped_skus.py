"""Shipped SKUs: complete but for what is ordered, distinct from each other, with limits that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clusterctl.edges.resources import resource
from clusterctl.edges.site.skus import read_skus
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import parse_yaml

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


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_figure_names_its_source_or_is_open(file: Path) -> None:
    """Counts and rates are cited or left open; so are memory, drives and power supplies. One example of an order is whole."""
    cited = ("hca_count", "hca_rate_gbps", "cpu_count", "memory_gib", "data_drive_count", "psus", "root_disk")
    for line in file.read_text().splitlines():
        field, _, rest = line.partition(":")
        if field in cited:
            assert "# " in rest, line
