"""Commands on hosts over SSH."""

from clusterctl.edges.ssh.shell import ParamikoShell

__all__ = ["ParamikoShell"]
