"""Suites of checks and loads, and their reader. One YAML file per suite."""
