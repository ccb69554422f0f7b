"""A BMC whose certificate is too old."""

from __future__ import annotations

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Certificate, Habit


class ExpiredCertificate(Habit):
    manner = Manner.EXPIRED_CERTIFICATE
    does = "its certificate expired yesterday: nobody who verifies it gets in"
    source = "RFC 5280, section 4.1.2.5"
    certificate = Certificate.EXPIRED
