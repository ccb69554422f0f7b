"""Our own PXE: machines boot over the network, tell who they are, and get an OS on the disk that is meant."""

from clusterctl.edges.pxe.app import AppSettings, build
from clusterctl.edges.pxe.desk import Desk
from clusterctl.edges.pxe.server import Server

__all__ = ["AppSettings", "Desk", "Server", "build"]
