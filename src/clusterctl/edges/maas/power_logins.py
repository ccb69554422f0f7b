"""The login with which MAAS uses a BMC: read to be tried; where it is the site's account, its password is changed."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasApi, MaasTurn, at_once
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.formats.maas.machines import MaasMachine, PowerParameters
from clusterctl.ports import BmcAddress, Clock, Deadline, FailureKind, InstallError, InstallTarget
from clusterctl.ports.accounts import LoginUpdate, PowerTarget


class MaasPowerLogins:
    """Meets `PowerLogins`. Safe to use from many threads, for different machines."""

    def __init__(self, settings: MaasSettings, clock: Clock, turn: MaasTurn = at_once) -> None:
        self._machines = Machines(MaasApi(settings, clock, turn))

    def give(self, target: PowerTarget, deadline: Deadline) -> Observed[LoginUpdate]:
        """Give MAAS the password of the machine that its MAC addresses or its serial prove to be the target's.

        A machine with another account, or without a BMC, is left as it is.
        """
        listed = self._machines.by_macs(target.macs, deadline)
        named = self._machines.by_hostnames([target.name], deadline)
        found = listed | named
        machine = matching.ours(found.machines.values(), target)
        evidence = found.of(machine)
        if machine is None:
            return Observed(LoginUpdate.UNKNOWN, evidence)
        return self._given(machine, target, evidence, deadline)

    def _given(
        self, machine: MaasMachine, target: PowerTarget, evidence: tuple[Evidence, ...], deadline: Deadline
    ) -> Observed[LoginUpdate]:
        before = self._machines.power_parameters(machine.system_id, deadline)
        if not before.address or before.user != target.bmc.user:
            return Observed(LoginUpdate.OTHER, evidence)
        _check_address(machine, before, target)
        if before.password == target.bmc.password:
            return Observed(LoginUpdate.HAD, evidence)
        deadline.check(f"giving MAAS the new password of {target.name}'s BMC")
        form = [("power_parameters_power_pass", target.bmc.password)]
        try:
            done = self._machines.update(machine.system_id, form, target.bmc, deadline).evidence
        except OutcomeUnknownError:
            done = ()  # what MAAS has now is read below, whatever its answer was
        if self._machines.power_parameters(machine.system_id, deadline).password != target.bmc.password:
            raise EdgeError(
                f"MAAS does not show the new password of {machine.hostname} ({machine.system_id})",
                where=target.name,
                remedy="run the command again; if it stays so, write it into the machine's power settings by hand",
            )
        return Observed(LoginUpdate.GIVEN, (*evidence, *done))


def power_login(found: PowerParameters, target: InstallTarget) -> BmcAddress:
    """Return the login of MAAS's power parameters, at the site's address of the BMC where MAAS has the same.

    Raises `InstallError` where MAAS lacks a part of it.
    """
    if not (found.address and found.user and found.password):
        raise InstallError(
            "MAAS lacks the address, the user or the password of the machine's BMC",
            FailureKind.LOGIN,
            where=target.name,
            remedy=f"complete the power parameters of {target.name} in MAAS",
        )
    login = replace(target.bmc, user=found.user, password=found.password, former=None)
    host, port = _place(found.address)
    if _is_host(host, target.bmc.host):
        return login
    return replace(login, host=host, port=port, plain_http=False)


def _place(address: str) -> tuple[str, int]:
    """Return host and port of a power address: an address or a name, with or without a port or the scheme https."""
    with contextlib.suppress(ValueError):
        return str(ip_address(address)), matching.HTTPS_PORT
    with contextlib.suppress(ValueError):
        parts = urlsplit(address if "://" in address else f"//{address}")
        return parts.hostname or address, parts.port or matching.HTTPS_PORT
    return address, matching.HTTPS_PORT


def _is_host(one: str, name: str) -> bool:
    """Return whether the address or name `one` is the host `name`, by text or by what the name resolves to."""
    if one.casefold() == name.casefold():
        return True
    with contextlib.suppress(ValueError):
        return ip_address(one) == ip_address(name)
    return not _addresses(one).isdisjoint(_addresses(name))


def _addresses(name: str) -> frozenset[str]:
    """Return the addresses that a name resolves to; of an address, itself; none where it does not resolve."""
    try:
        return frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return frozenset()


def _check_address(machine: MaasMachine, found: PowerParameters, target: PowerTarget) -> None:
    """Raise `EdgeError` where MAAS has another BMC's address: it would send the password there."""
    if found.address in (matching.power_address(target.bmc), target.bmc.host):
        return
    raise EdgeError(
        f"MAAS's machine {machine.hostname} ({machine.system_id}) has its BMC at {found.address}, the site at "
        f"{target.bmc.host}: MAAS did not get the new password",
        where=target.name,
        remedy="correct the power address of the machine in MAAS, or the site file",
    )
