"""What can be made to go wrong in the lab's MAAS itself (a machine's faults belong to the machine)."""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from dataclasses import dataclass, field

from clusterctl_lab.emulators.maas.refusal import RefusedError

RACK = "rack01"
VERSION = "3.4.10"


class Failure(enum.Enum):
    """A failure of the answer to one call. BUSY: the operation did not run. The others: it ran, and the caller cannot
    know. BREAKDOWN: 500, as from MAAS 3.5 on where it waited for a BMC without success. UNSENT and HTML: the operation
    did not run either; the connection is closed, or the answer is 500 with a page of HTML.
    """

    BUSY = "busy"
    GATEWAY_TIMEOUT = "gateway_timeout"
    LOST = "lost"
    BREAKDOWN = "breakdown"
    UNSENT = "unsent"
    HTML = "html"


@dataclass(slots=True)
class Faults:
    """`answers`: per operation (`deploy`, or `POST` where it has no name) the failures of its next calls.

    version          the version that MAAS reports
    rack_connected   False: no rack controller can reach BMCs or boot machines; clients retry after
                     `retry_after` seconds
    dhcp_off         no server assigns addresses
    stuck, failing_scripts   hostnames
    deaf_tags        tags that MAAS reports as added, and does not add
    rack_lost        as rack_connected False, by a quirk
    install_logs     hostnames whose installation fails, with the log that curtin sends
    unsynced         series without images yet; `rack_without`: series that only the rack lacks
    """

    rack_connected: bool = True
    rack_lost: bool = False
    dhcp_off: bool = False
    version: str = VERSION
    retry_after: int = 10
    stuck: set[str] = field(default_factory=set)
    failing_scripts: set[str] = field(default_factory=set)
    deaf_tags: set[str] = field(default_factory=set)
    install_logs: dict[str, str] = field(default_factory=dict)
    unsynced: set[str] = field(default_factory=set)
    rack_without: set[str] = field(default_factory=set)
    answers: defaultdict[str, deque[Failure]] = field(default_factory=lambda: defaultdict(deque))

    def next_answer(self, op: str) -> Failure | None:
        return self.answers[op].popleft() if self.answers[op] else None

    @property
    def retries_logins(self) -> bool:
        """Return whether MAAS tries a login again that a BMC rejected: up to 3.5 it does."""
        major, minor = (*self.version.split("."), "", "")[:2]
        return major.isdigit() and minor.isdigit() and (int(major), int(minor)) < (3, 6)

    @property
    def rack_reaches(self) -> bool:
        return self.rack_connected and not self.rack_lost

    def need_rack(self) -> None:
        """Answer 503, as MAAS does where an operation needs a rack controller and none is connected."""
        if not self.rack_reaches:
            raise self._no_rack()

    def check_busy(self, failure: Failure | None) -> None:
        """503 where that is the failure to show."""
        if failure is Failure.BUSY:
            raise self._no_rack()

    def _no_rack(self) -> RefusedError:
        message = f"Unable to connect to any rack controller {RACK}; no connections available."
        return RefusedError(503, message, {"Retry-After": str(self.retry_after)})
