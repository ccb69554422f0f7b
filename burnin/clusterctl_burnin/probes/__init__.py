"""Probes that several checks share, one module per tool."""
