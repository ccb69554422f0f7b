"""Wiring rules inferred from a fabric without a plan."""
