"""The refusals of an iDRAC9; other messages are those of the DMTF Base registry.

Recorded: not found (in the R750's tree, DellNIC/NIC.Slot.5-1). Published by users of real ones: unauthorized
(dell/iDRAC-Redfish-Scripting#126), method not allowed (#64, #223), already on (dellemc-openmanage-ansible-modules#132;
409 as well when already off, openstack-k8s-operators/infra-operator#434), too many sessions (stmcginnis/gofish#75, HTTP
503), pending job (dellemc-openmanage-ansible-modules, SYS011), virtual media (VRM0021 and VRM0009 with HTTP 500, sushy
and its users).
"""

from __future__ import annotations

from clusterctl_lab.emulators.redfish.messages import CRITICAL, OK, Language, Message
from clusterctl_lab.emulators.redfish.profile import Problem

_BASE = "Base.1.12"
_IDRAC = "IDRAC.2.7"
_INFORMATIONAL = "Informational"
_SEE_GUIDE = "For information about valid values, see the Redfish Users Guide available on the support site."
_NO_ACTION = "No response action is required."

LANGUAGE = Language(
    base=_BASE,
    done=(
        Message("Success", "The request completed successfully.", OK),
        Message(f"{_IDRAC}.SYS413", "The operation successfully completed.", _INFORMATIONAL, _NO_ACTION),
    ),
    own={
        Problem.UNAUTHORIZED: (
            401,
            (
                Message(
                    "AccessDenied",
                    "The authentication credentials included with this request are missing or invalid.",
                    CRITICAL,
                    "Attempt to ensure that the URI is correct and that the service has the appropriate credentials.",
                ),
            ),
        ),
        Problem.NOT_FOUND: (
            404,
            (
                Message(
                    f"{_IDRAC}.SYS403",
                    "Unable to complete the operation because the resource {} entered is not found.",
                    CRITICAL,
                    f"Enter the correct resource and retry the operation. {_SEE_GUIDE}",
                ),
                Message(
                    "ResourceMissingAtURI",
                    "The resource at the URI '{}' was not found.",
                    CRITICAL,
                    "Place a valid resource at the URI or correct the URI and resubmit the request.",
                ),
            ),
        ),
        Problem.METHOD_NOT_ALLOWED: (
            405,
            (
                Message(
                    f"{_IDRAC}.SYS402",
                    "Unable to run the method because the requested HTTP method is not allowed.",
                    _INFORMATIONAL,
                    f"Enter a valid HTTP method and retry the operation. {_SEE_GUIDE}",
                ),
            ),
        ),
        Problem.ALREADY_ON: (
            409,
            (Message(f"{_IDRAC}.PSU501", "Server is already powered ON.", _INFORMATIONAL, _NO_ACTION),),
        ),
        Problem.ALREADY_OFF: (
            409,
            (Message(f"{_IDRAC}.PSU502", "Server is already powered OFF.", _INFORMATIONAL, _NO_ACTION),),
        ),
        Problem.TOO_MANY_SESSIONS: (
            503,
            (
                Message(
                    f"{_IDRAC}.RAC0218",
                    "The maximum number of user sessions is reached.",
                    _INFORMATIONAL,
                    "Close one or more sessions before opening another session.",
                ),
            ),
        ),
        Problem.JOB_PENDING: (
            400,
            (
                Message(
                    f"{_IDRAC}.SYS011",
                    "Pending configuration values are already committed, unable to perform another set operation.",
                    "Warning",
                    "Wait for the scheduled job to complete or delete the configuration jobs before attempting more "
                    "set attribute operations.",
                ),
            ),
        ),
        Problem.MEDIA_IN_USE: (
            500,
            (
                Message(
                    f"{_IDRAC}.VRM0021",
                    "Virtual Media is detached or Virtual Media redirection for the selected virtual device is already "
                    "in use.",
                    CRITICAL,
                    "Change the Virtual Media Attach Mode, or stop the redirection of the device, and retry.",
                ),
            ),
        ),
        Problem.NO_MEDIA: (
            500,
            (
                Message(
                    f"{_IDRAC}.VRM0009",
                    "No Virtual Media devices are currently connected.",
                    CRITICAL,
                    "Connect a Virtual Media device and retry the operation.",
                ),
            ),
        ),
    },
)
