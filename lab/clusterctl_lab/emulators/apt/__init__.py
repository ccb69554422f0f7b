"""The lab's own apt repositories, so that roles install on lab hosts with the same code as on real hosts.

`/debian` contains real packages of the distribution; `/nvidia` and the other vendors' folders contain stand-ins for the
vendors' packages. All are flat repositories, signed by a key that is created for this cache and deleted after signing.
"""

from clusterctl_lab.emulators.apt.repository import ensure_repository
from clusterctl_lab.emulators.apt.server import AptServer, host_files, serve_apt, vendor_repository
from clusterctl_lab.emulators.apt.vendors.nvidia import DRIVER_VERSION

__all__ = ["DRIVER_VERSION", "AptServer", "ensure_repository", "host_files", "serve_apt", "vendor_repository"]
