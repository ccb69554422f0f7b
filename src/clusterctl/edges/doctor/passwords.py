"""BMCs' passwords that clusterctl gave: is any in doubt, its change begun and never seen to be taken?"""

from __future__ import annotations

from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, enumerated, ok, warn
from clusterctl.ports.accounts import Generation

NAME = "passwords"
REMEDY = (
    "finish them: clusterctl accounts rotate NODE (bootstrap does so too); it tries the new password, then the old one"
)


def check(site: Site) -> Diagnosis:
    newest: dict[str, Generation] = {}
    for one in site.logins.kept.all():
        newest[one.name] = one  # they come oldest first
    if not newest:
        return ok(NAME, "no BMC has got a password from clusterctl")
    doubted = sorted(one.name for one in newest.values() if not one.proven)
    if doubted:
        message = f"of {enumerated(doubted)} it is not known whether the BMC took its new password"
        return warn(NAME, message, REMEDY)
    return ok(NAME, f"given to {len(newest)} BMC{'' if len(newest) == 1 else 's'}, each seen to be taken")
