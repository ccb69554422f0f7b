"""MAAS as one of the site's nodes sees it: names, packages, time and metadata, tried on the node over SSH."""

from __future__ import annotations

from contextlib import closing

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.host import HostFacts
from clusterctl.edges.maas.host.from_node import NodeRequest, check_view, node_request, unseen
from clusterctl.fleet.diagnosis import Diagnosis
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.maas.node_view import parse_node_view
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.operations.preparation import MaasCheckRequest, MaasCheckResult, site_needs
from clusterctl.operations.selection import require_listed
from clusterctl.operations.site_adapters import maas_settings
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl_burnin.probe import Probe, argv_for, parse_readings, script

VIEW_S = 100.0
"""Seconds on the node: nothing that it asks waits longer than 20, and few things are asked."""
LOGIN_S = 30.0
"""Seconds for the login, and for the answer's way back."""
_PROGRAM = "maas-view"


def check(context: SiteContext, name: str, request: MaasCheckRequest, control: Control) -> MaasCheckResult:
    """Return what the node finds of MAAS. Raises `UsageError` for a node that SSH cannot reach by what is known of it.

    MAAS itself is asked first what it gives to a machine at that address; it raises what `MaasApi.get` raises.
    """
    node = context.node(name)
    require_listed(context, [name])
    if not (node.address and node.host_key):
        remedy = f"clusterctl install --limit {name} first, or clusterctl adopt {name}"
        raise UsageError("its address or its SSH host key is unknown", where=name, remedy=remedy)
    settings, ssh = maas_settings(context.site), context.site.settings.ssh
    host = HostAddress(name, node.address, ssh.user, node.host_key, context.site.path(ssh.private_key))
    deadline = Deadline.after(request.deadline_s, control.cancelled)
    facts = HostFacts(MaasApi(settings, CLOCK), deadline, site_needs(context.site, settings, request.subnet))
    wanted = node_request(facts, host.address)
    with closing(context.adapters(Access.READ)) as adapters:
        found = _tried(adapters.shell, host, wanted, deadline)
    return MaasCheckResult(found=found, reached=True, from_node=True)


def _tried(shell: Shell, host: HostAddress, wanted: NodeRequest, deadline: Deadline) -> tuple[Diagnosis, ...]:
    probe = Probe(_PROGRAM, (_PROGRAM, wanted.argument), timeout=VIEW_S)
    try:
        ran = shell.run(host, argv_for(host.user, privileged=True), script((probe,)), deadline.within(VIEW_S + LOGIN_S))
        result = parse_readings(ran.value.stdout).result(probe)
        if result.rc != 0:
            return unseen(f"{_PROGRAM} failed on {host.name}: {result.error_output}", f"see that {host.name} works")
        return check_view(wanted, parse_node_view(result.stdout))
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        broken = peer_error(error, host.name)
        return unseen(f"{host.name}: {broken.message}", broken.remedy or f"see that {host.name} can be logged in to")
