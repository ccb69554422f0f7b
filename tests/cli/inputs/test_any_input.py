"""Whatever stands in an operator's file: it is understood, or refused in our words. Nothing else is ever raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.edges.resources import resource
from clusterctl.edges.site.skus import SkuFile
from clusterctl.formats.site.table import read_table
from clusterctl.formats.site.yaml_document import Document, parse_yaml, validate
from clusterctl.formats.wiring.plan import decode_plan, parse_topo, parse_wiring_csv
from clusterctl.site.settings import SiteSettings
from clusterctl_burnin.kernel_log.site_lines import parse_known_lines
from clusterctl_burnin.limits.reading import parse_limits
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.suites.suite import parse_suite
from tests.lab_data import lab_text
from tests.refusals import refused_in_words

SITE = (resource("site") / "site.yml").read_text(encoding="utf-8")
SKU = lab_text("skus/lab-xe9680.yml")
LIMITS, SUITE = lab_text("limits/lab.yml"), text_of("suites/bootstrap.yml") + "checks: [identity]\n"
WIRING = "source_device,source_port,destination_device,destination_port,rack,unit\nn1,mlx5_0,leaf,1,A1,4\n"
KERNEL_LOG = "version: 1\nknown:\n- {pattern: '^frob .*widgets', why: spare}\n- {message: 'a <n>', why: spare}\n"
TOPO = "SW36 leaf-1\n  P1 -> HCA node001 P1\n"

PIECES = st.text("[]{}&*!|>%@`'\"#:-,;\t\n\0\ufeff 019.eExXoO_~<=nayN²ä\x85\u2028", max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=6,
)

READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "yaml": (SITE, lambda text: parse_yaml(text, "f")),
    "site": (SITE, lambda text: validate(parse_yaml(text, "f"), SiteSettings, "docs")),
    "sku": (SKU, lambda text: validate(parse_yaml(text, "f"), SkuFile, "docs")),
    "limits": (LIMITS, lambda text: parse_limits(text, where="f")),
    "suite": (SUITE, lambda text: parse_suite(text, where="f")),
    "kernel_log": (KERNEL_LOG, lambda text: parse_known_lines(text, where="f")),
    "table": (WIRING, lambda text: list(read_table(text, "f").rows)),
    "wiring": (WIRING, lambda text: parse_wiring_csv(text, file="f")),
    "topo": (TOPO, lambda text: parse_topo(text, file="f")),
}
"""Kind of file → a right one, and what reads it."""


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_right_file_with_something_in_it(kind: str, data: st.DataObject) -> None:
    """Characters put in, or in the place of others, anywhere in a right file."""
    right, read = READERS[kind]
    start = data.draw(st.integers(0, len(right)))
    end = data.draw(st.integers(start, min(len(right), start + 20)))
    text = right[:start] + data.draw(PIECES) + right[end:]
    refused_in_words(lambda: read(text), "f")


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=25, deadline=None)
@given(text=PIECES | st.text())
def test_any_text(kind: str, text: str) -> None:
    """A file that is no such file at all."""
    refused_in_words(lambda: READERS[kind][1](text), "f")


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_value_in_the_place_of_a_right_one(data: st.DataObject) -> None:
    """Each field of a right site file, with any value of any type in its place."""
    site = yaml.safe_load(SITE)
    here, path = site, []
    while isinstance(here, dict) and here and (not path or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(sorted(here)))
        path.append((here, key))
        here = here[key]
    holder, key = path[-1]
    holder[key] = data.draw(VALUES)
    refused_in_words(lambda: validate(Document("f", site, {}), SiteSettings, "docs"), "f")


@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_as_a_plan(data: bytes) -> None:
    """Bytes that are no text."""
    for name in ("plan.csv", "plan.topo"):
        refused_in_words(lambda name=name: decode_plan(data, file=name), name)


def test_the_right_files_are_right() -> None:
    """What the cases above are made of is accepted."""
    for right, read in READERS.values():
        assert read(right)
