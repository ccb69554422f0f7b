"""Recorded evidence: reading, exporting and judging it again."""
