"""The lab's own apt repositories, so that roles install on lab hosts with the code that installs on real ones.

`/debian` holds real packages of the distribution; `/nvidia` and the other vendors' hold stand-ins for what theirs have.
All are flat repositories, signed by a key that is made for this cache and thrown away after signing.
"""

from clusterctl_lab.emulators.apt.repository import ensure_repository
from clusterctl_lab.emulators.apt.server import AptServer, host_files, serve_apt, vendor_repository
from clusterctl_lab.emulators.apt.vendors.nvidia import DRIVER_VERSION

__all__ = ["DRIVER_VERSION", "AptServer", "ensure_repository", "host_files", "serve_apt", "vendor_repository"]
