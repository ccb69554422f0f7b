"""A BMC with the certificate of another host."""

from __future__ import annotations

from clusterctl_lab.faces.redfish.manners.habit import Certificate, Habit
from clusterctl_lab.manner import Manner


class OtherCertificate(Habit):
    manner = Manner.OTHER_CERTIFICATE
    does = "its certificate is another address's: nobody who verifies it gets in"
    source = "RFC 6125; addresses given anew, boards swapped with their BMC"
    certificate = Certificate.OTHER
