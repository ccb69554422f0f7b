"""Channels to people, by apprise."""

from clusterctl.edges.notify.apprise_channels import AppriseChannels

__all__ = ["AppriseChannels"]
