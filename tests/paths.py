"""Folders that tests read in addition to their own."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
"""The checkout."""
SHARED = ROOT.parent / "shared"
"""Facts and recordings next to the checkout; absent in a plain clone."""
needs_checkout = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="reads pages, roles or code of the checkout, which no wheel has"
)
"""For tests that make test-wheel skips."""
