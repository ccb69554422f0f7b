"""Finds BMCs in a network: which addresses answer, and which machine each belongs to."""

from clusterctl.edges.redfish.sweep.candidate import CandidateProbe
from clusterctl.edges.redfish.sweep.port_scan import TcpState
from clusterctl.edges.redfish.sweep.scan import ScanProgress, ScanResult, sweep

__all__ = ["CandidateProbe", "ScanProgress", "ScanResult", "TcpState", "sweep"]
