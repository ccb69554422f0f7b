"""What changes BMCs' passwords, composed as the site says."""

from __future__ import annotations

from clusterctl.edges.site.kept_passwords import PasswordVault
from clusterctl.operations.adapters import AccountsOutside
from clusterctl.operations.context import Office
from clusterctl.site.bmc import RotationSettings
from clusterctl.steps.accounts.rotation import PasswordRotation, RotationPolicy


def rotator(office: Office, outside: AccountsOutside) -> PasswordRotation:
    """By the site's rule; where it has none, by the shipped one, for what was begun while it had one."""
    site = office.site
    said = site.settings.bmc.rotation or RotationSettings()
    return PasswordRotation(
        outside.accounts,
        site.bmc_address,
        PasswordVault(site.logins.kept, said.rule),
        lambda: outside.power_logins,
        office.journal,
        RotationPolicy(said.user, said.rule, site.own_logins()),
        site.settings.batch.discover,
    )
