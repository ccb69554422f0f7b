"""Answers of the MAAS API 2.0."""
