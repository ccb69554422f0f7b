"""Limits files and their reader. One YAML file per hardware model."""
