"""A BMC with the certificate of another host."""

from __future__ import annotations

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Certificate, Habit


class OtherCertificate(Habit):
    manner = Manner.OTHER_CERTIFICATE
    does = "its certificate is another address's: nobody who verifies it gets in"
    source = "RFC 6125; addresses given anew, boards swapped with their BMC"
    certificate = Certificate.OTHER
