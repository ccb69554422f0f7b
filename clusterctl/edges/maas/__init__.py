"""MAAS API 2.0 as an `Installer`."""

from clusterctl.edges.maas.installer import MaasInstaller
from clusterctl.edges.maas.settings import MaasSettings

__all__ = ["MaasInstaller", "MaasSettings"]
