"""When so much of a fabric is broken that nothing shall be done link by link."""

from __future__ import annotations

from clusterctl.cabling.explain.verify import Verification

FEWEST = 10
"""Up to so many links may be one host's own cables, whatever share of a small fabric they are."""


def too_broken(broken: int, links: int, most_percent: float) -> str:
    """Why everything shall be left as it is until somebody has looked; empty where no more than the limit is broken."""
    if not links or 100 * broken / links <= most_percent:
        return ""
    return (
        f"{broken} of {links} links are bad ({100 * broken / links:.1f} %, at most {most_percent:g} %): stop, and look "
        "for what they share (a rack's power or cooling, a firmware, a batch of cables) before any cable is touched"
    )


def too_broken_for_hosts(verification: Verification, most_percent: float) -> str:
    """As `too_broken`, of cables that are not where they belong, and only for more than `FEWEST` of them.

    The links of dark hosts do not count either way.
    """
    links = verification.planned - sum(verification.hosts[host].planned for host in verification.dark_hosts)
    broken = links - verification.right
    return too_broken(broken, links, most_percent) if broken > FEWEST else ""
