"""clusterctl's own PXE: machines boot over the network, report themselves, and get an OS on the expected disk."""

from clusterctl.edges.pxe.app import AppSettings, build
from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.server import Server

__all__ = ["AppSettings", "AttemptStore", "Server", "build"]
