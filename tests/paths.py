"""Folders that tests read in addition to their own."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The checkout."""
SHARED = ROOT.parent / "shared"
"""Facts and recordings next to the checkout; absent in a plain clone."""
