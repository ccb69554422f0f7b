"""Mass failure: so many broken links that a repair link by link is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.cabling.explain.verify import CablingVerification

FEWEST = 10
"""So many broken links may be one host's own cables, whatever share of a small fabric they are."""


@dataclass(frozen=True, slots=True)
class MassFailure:
    """`broken` of `links` links; more than `limit_percent`."""

    broken: int
    links: int
    limit_percent: float

    @property
    def reason(self) -> str:
        """What is wrong, and what to do before any cable is touched."""
        return (
            f"{self.broken} of {self.links} links are bad ({100 * self.broken / self.links:.1f} %, at most "
            f"{self.limit_percent:g} %): stop, and find their common cause (a rack's power or cooling, a firmware, a "
            "batch of cables) before any cable is touched"
        )


def mass_failure(broken: int, links: int, limit_percent: float) -> MassFailure | None:
    """Return the mass failure; None where at most `limit_percent` of the links are broken."""
    exceeded = links > 0 and 100 * broken / links > limit_percent
    return MassFailure(broken, links, limit_percent) if exceeded else None


def cabling_mass_failure(verification: CablingVerification, limit_percent: float) -> MassFailure | None:
    """Return the mass failure of misplaced cables; None for at most `FEWEST` of them. Dark hosts do not count."""
    links = verification.planned - sum(verification.hosts[host].planned for host in verification.dark_hosts)
    broken = links - verification.right
    return mass_failure(broken, links, limit_percent) if broken > FEWEST else None
