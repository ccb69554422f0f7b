"""Wiring plans as people have them → WiringPlan: `wiring.csv`, ibtopodiff's `.topo`, UFM's `.ndt`; gzipped or not.

A draft holds a plan with its contradictions, for `cable lint`; a plan has none.
"""

from __future__ import annotations

from itertools import islice

from clusterctl.fleet.fabric.wiring import PlanDraft, WiringPlan, settle
from clusterctl.formats.file_text import text_in
from clusterctl.formats.wiring.csv_plan import read_wiring_csv
from clusterctl.formats.wiring.ndt import is_ndt, read_ndt
from clusterctl.formats.wiring.topo import CABLE, read_topo

_FIRST_LINES = 50


def decode_plan(data: bytes, *, file: str) -> WiringPlan:
    """The plan in a file's bytes. Raises UsageError with file and line, also where the plan contradicts itself."""
    return settle(decode_draft(data, file=file))


def decode_draft(data: bytes, *, file: str) -> PlanDraft:
    """As `decode_plan`, contradictions kept. The kind is told by the file's name, else by its first lines."""
    text = text_in(data, file)
    name = file.lower().removesuffix(".gz")
    if name.endswith(".topo"):
        return read_topo(text, file)
    lines = list(islice((line.strip() for line in text.splitlines() if line.strip()), _FIRST_LINES))
    if name.endswith(".ndt") or (lines and is_ndt(lines[0])):
        return read_ndt(text, file)
    if not name.endswith(".csv") and any(CABLE.match(line) for line in lines):
        return read_topo(text, file)
    return read_wiring_csv(text, file)


def parse_wiring_csv(text: str, *, file: str = "wiring.csv") -> WiringPlan:
    """Raises UsageError that names file, line and column."""
    return settle(read_wiring_csv(text, file))


def parse_topo(text: str, *, file: str = "plan.topo") -> WiringPlan:
    """Raises UsageError that names file and line."""
    return settle(read_topo(text, file))
