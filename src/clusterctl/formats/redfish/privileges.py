"""Which privilege a request needs, by the mapping that the DMTF publishes (DSP8011, Redfish privilege mapping)."""

from __future__ import annotations

_MANAGED_BY = (
    ("/redfish/v1/AccountService", "ConfigureUsers"),
    ("/redfish/v1/Managers", "ConfigureManager"),
    ("/redfish/v1/SessionService", "ConfigureManager"),
    ("/redfish/v1/UpdateService", "ConfigureComponents"),
)


def privilege_of(method: str, path: str) -> str:
    """Return the privilege by its name in the specification; reads need `Login`."""
    if method == "GET":
        return "Login"
    return next((name for prefix, name in _MANAGED_BY if path.startswith(prefix)), "ConfigureComponents")
