"""Wiring plans of the standard shapes."""
