"""HPE iLO.

It resets connections that are used again, answers 401 to right credentials now and then, and changes nothing while the
machine is in POST (message `UnableToModifyDuringSystemPOST` of HPE's iLO registry). An iLO delays logins after a
failure and locks no account (`Oem.Hpe.AuthFailuresBeforeDelay`).
"""

from __future__ import annotations

from clusterctl.edges.redfish.quirks.quirk import LATER, Quirks

QUIRKS = Quirks(
    "hpe",
    signs=("hpe", "hewlett", "ilo"),
    keep_alive=False,
    login_tries=5,
    later=(*LATER, "UnableToModifyDuringSystemPOST", "InvalidOperationForSystemState"),
)
