"""MAAS API 2.0 as an `Installer`, and as one that logs in to BMCs."""

from clusterctl.edges.maas.api import MaasTurn
from clusterctl.edges.maas.installer import MaasInstaller
from clusterctl.edges.maas.power_logins import MaasPowerLogins
from clusterctl.edges.maas.settings import MaasSettings, StateLimits

__all__ = ["MaasInstaller", "MaasPowerLogins", "MaasSettings", "MaasTurn", "StateLimits"]
