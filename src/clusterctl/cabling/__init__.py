"""Wiring plans and observed fabrics: compared, and their differences explained. Pure."""
