"""Quirks of the lab's MAAS: what each one does, and where it was observed. A quirk is data of a machine.

Quirks of the whole region hold as long as any machine has them.
"""

from __future__ import annotations

import enum
from typing import Self

_REVERT = "maasserver/models/node.py, _start_bmc_unavailable (MAAS 3.5)"


class MaasQuirk(enum.Enum):
    """The value is the name for `lab inject maas-quirks NODE:QUIRK`; `does` is its effect, `source` its origin."""

    does: str
    source: str

    def __new__(cls, value: str, does: str, source: str) -> Self:
        member = object.__new__(cls)
        member._value_ = value
        member.does, member.source = does, source
        return member

    SLOW_REQUESTS = (
        "slow-requests",
        "commission and deploy are answered only when the BMC has switched the machine on; 500 where it does not",
        "maasserver/models/node.py, _start (MAAS 3.5)",
    )
    LATE_500 = (
        "late-500",
        "commission and deploy wait for a BMC that never obeys, answer 500, and the machine is where it was",
        _REVERT,
    )
    REVERTS = ("reverts", "commission and deploy answer 200, and soon the machine is where it was", _REVERT)
    DETAIL_503 = (
        "detail-503",
        "commission and deploy answer 503; only the machine's events name the cause",
        f"NoConnectionsAvailable in maasserver/middleware.py; {_REVERT}",
    )
    NO_RACK = (
        "no-rack",
        "no rack controller of the region is connected: 503 with Retry-After",
        "recorded from MAAS 3.4.10 (209 to 214)",
    )
    REGION_AWAY = ("region-away", "the region is stopped: its nginx answers 502 with a page", "nginx")
    REGION_AWAY_HAPROXY = (
        "region-away-haproxy",
        "the region is stopped: its haproxy answers 503 with a page",
        "haproxy's errorfile 503",
    )
    REGION_REFUSES = ("region-refuses", "nothing listens at the region's port", "connect(2), ECONNREFUSED")
    HTML_ERRORS = ("html-errors", "writes to the machine are answered with a page of HTML and 500", "Django")
    NO_RIGHTS = (
        "no-rights",
        "the API key belongs to a user who is no administrator",
        "recorded from MAAS 3.4.10 (015, 048, 070)",
    )
    NO_POOL_RIGHTS = (
        "no-pool-rights",
        "MAAS takes rights from Canonical RBAC: the key may enrol machines, and administer none of this machine's pool",
        "maasserver/auth.py, _can_admin with rbac_enabled (MAAS 3.5)",
    )
    OTHER_POOL = (
        "other-pool",
        "the machine has enlisted itself, and lies in the resource pool research",
        "recorded from MAAS 3.4.10 (113, 223)",
    )
    FAILING_SCRIPTS = (
        "failing-scripts",
        "the machine's commissioning and testing scripts fail",
        "recorded from MAAS 3.4.10 (216)",
    )
    HOSTILE_EVENTS = (
        "hostile-events",
        "the machine's events hold terminal escapes and HTML",
        "scripts and BMCs write into a machine's events",
    )


IN_REQUEST = frozenset({MaasQuirk.SLOW_REQUESTS, MaasQuirk.LATE_500, MaasQuirk.DETAIL_503})
"""Those with which a request waits for the BMC."""
NEVER_OBEYS = frozenset({MaasQuirk.LATE_500, MaasQuirk.DETAIL_503, MaasQuirk.REVERTS})
"""Those with which no order reaches the BMC."""
