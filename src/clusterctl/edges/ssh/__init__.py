"""Commands on hosts over SSH."""

from clusterctl.edges.ssh.key_scan import HostKeyScanner
from clusterctl.edges.ssh.shell import ParamikoShell

__all__ = ["HostKeyScanner", "ParamikoShell"]
