"""MAAS as one of the site's nodes sees it: names, packages, time and metadata, tried on the node over SSH."""

from __future__ import annotations

from contextlib import closing

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.host import HostFacts
from clusterctl.edges.maas.host.from_node import NodeRequest, check_view, node_request, unseen
from clusterctl.fleet.diagnosis import Diagnosis
from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.formats.maas.node_view import parse_node_view
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.operations.preparation import MaasCheckRequest, MaasCheckResult, site_needs
from clusterctl.operations.selection import require_listed
from clusterctl.operations.site_adapters import maas_settings
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.steps.burnin.node_under_test import SessionFailure, read_probes
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl_burnin.probe import Probe, Status, script

VIEW_S = 100.0
"""Seconds on the node: nothing that it asks waits longer than 20, and few things are asked."""
_PROGRAM = "maas-view"


def check(context: SiteContext, name: str, request: MaasCheckRequest, control: Control) -> MaasCheckResult:
    """Return what the node finds of MAAS. Raises `UsageError` for a node that SSH cannot reach by what is known of it.

    MAAS itself is asked first what it gives to a machine at that address; it raises what `MaasApi.get` raises.
    """
    require_listed(context, [name])
    node = context.node(name)
    settings, ssh = maas_settings(context.site), context.site.settings.ssh
    host = SshAccess(ssh.user, context.site.path(ssh.private_key)).address(node)
    if host is None:
        remedy = f"clusterctl install --limit {name} first, or clusterctl adopt {name}"
        raise UsageError("its address or its SSH host key is unknown", where=name, remedy=remedy)
    deadline = Deadline.after(request.deadline_s, control.cancelled)
    facts = HostFacts(MaasApi(settings, CLOCK), deadline, site_needs(context.site, settings, request.subnet))
    wanted = node_request(facts, host.address)
    with closing(context.adapters(Access.READ)) as adapters:
        found = _tried(adapters.shell, host, wanted, deadline)
    return MaasCheckResult(found=found, reached=True, from_node=True)


def _tried(shell: Shell, host: HostAddress, wanted: NodeRequest, deadline: Deadline) -> tuple[Diagnosis, ...]:
    probe = Probe(_PROGRAM, (_PROGRAM, wanted.argument), timeout=VIEW_S)
    answer, _ = read_probes(shell, host, script((probe,)), deadline.within(VIEW_S + 30.0), privileged=True)
    if isinstance(answer, SessionFailure):
        return unseen(f"{host.name}: {answer.cause}", answer.remedy or f"see that {host.name} can be logged in to")
    result = answer.probes.get(_PROGRAM)
    if result is None or result.status is not Status.OK or result.rc != 0:
        reason = "did not end in time" if result and result.status is Status.TIMEOUT else "failed"
        printed = f": {result.error_output}" if result and result.status is Status.OK else ""
        return unseen(f"the program {_PROGRAM} {reason} on {host.name}{printed}", f"see that {host.name} has python3")
    try:
        return check_view(wanted, parse_node_view(result.stdout))
    except ParseError as error:
        return unseen(f"the answer of {host.name} was not understood: {error.message}", "run it again")
