"""The lab's own apt repositories, so that roles install on lab hosts with the code that installs on real ones.

`/debian` holds real packages of the distribution, `/nvidia` stand-ins for what NVIDIA's repository has. Both are flat
repositories, signed by a key that is made for this cache and thrown away after signing.
"""

from clusterctl.lab.faces.apt.client import host_files, nvidia_repository
from clusterctl.lab.faces.apt.repository import ensure_repository
from clusterctl.lab.faces.apt.server import AptServer, serve_apt
from clusterctl.lab.faces.apt.standins import DRIVER_VERSION

__all__ = ["DRIVER_VERSION", "AptServer", "ensure_repository", "host_files", "nvidia_repository", "serve_apt"]
