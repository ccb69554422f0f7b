"""Folders that tests read besides their own."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The checkout."""
SHARED = ROOT.parent / "shared"
"""Facts and recordings beside the checkout; absent in a plain clone."""
