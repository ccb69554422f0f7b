"""Enrolls the authority that a machine's firmware is to trust for its boot over HTTPS. Others' authorities stay."""

from __future__ import annotations

from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import RedfishChange, Writer, WriteReading
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.boot_certificates import (
    BootAuthorities,
    enrollment,
    fingerprint,
    read_boot_authorities,
)
from clusterctl.ports import Deadline


class BootAuthority:
    """The boot authorities of machine `serial` through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)

    @property
    def steps(self) -> list[str]:
        """Requests and readings, for the evidence."""
        return self._writer.steps

    def enroll(self, pem: str, deadline: Deadline) -> None:
        """Add the authority where it is missing, and verify it."""
        wanted = fingerprint(pem)
        found: list[BootAuthorities] = []

        def read(within: Deadline) -> WriteReading:
            control, _ = self._session.walk(read_boot_authorities, within)
            found.append(control)
            return WriteReading(control.serial, wanted in control.fingerprints, str(control))

        first = self._writer.read(read, deadline)
        if first.done:
            return
        change = RedfishChange(
            f"enroll the boot authority {wanted[:16]}",
            "POST",
            found[-1].collection,
            (enrollment(pem),),
            read,
            seconds=self._timing.settle,
            remedy="the BMC may show no certificates: enroll the authority in the UEFI setup, and set "
            "provisioning.https.enroll: by-hand",
        )
        self._writer.make(change, deadline, first)
