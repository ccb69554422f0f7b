"""Fixtures of the tests with hostile peers."""

from tests.steps.conftest import book

__all__ = ["book"]
