"""Loads of several nodes. Each module defines `LOAD`."""
