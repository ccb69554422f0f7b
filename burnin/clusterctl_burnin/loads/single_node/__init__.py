"""Loads of one node. Each module defines `LOAD`."""
