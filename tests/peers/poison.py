"""Poison: the listed texts of `poison.yml`, and any bytes."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_CASES = yaml.safe_load(Path(__file__).with_name("poison.yml").read_text())
LISTED = tuple(case["text"] * case.get("repeat", 1) + case.get("close", "") * case.get("repeat", 1) for case in _CASES)
ANY = st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
few = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
"""For a property that runs a whole step: few examples, always the same ones."""
