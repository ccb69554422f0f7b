"""Looks at the controller: thin probes, and pure judgements of what they saw. One file a check; nothing is written."""

from clusterctl.edges.doctor.examination import NoSiteError, examine

__all__ = ["NoSiteError", "examine"]
