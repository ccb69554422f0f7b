"""Checks of the controller: probes that read, and pure judgements of what they read. Nothing is written."""

from clusterctl.edges.doctor.checks import NoSiteError, examine

__all__ = ["NoSiteError", "examine"]
