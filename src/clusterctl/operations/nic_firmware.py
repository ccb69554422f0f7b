"""Firmware of network adapters, burnt from the machines' OS in waves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions.permissions import settings_permitted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.waves import Machine
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.compose import reboot_cap
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Preview, Result
from clusterctl.operations.selection import selected
from clusterctl.operations.waves import WavePlan, WaveRequest, WaveRun, node_ids
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.settings.nic_firmware import NicFirmwareWork

NAME = "nic-firmware"
WAVE_S = 3 * 3600.0
"""Seconds for the playbook over one wave: eight adapters burnt one after another, and a server's boot."""
DONE = "its adapters run their firmware"
IMAGES = "nic_firmware_images"


def preview(context: SiteContext, request: WaveRequest) -> Preview:
    """Return the waves; which adapters need an image is read on each machine, before its turn."""
    image_variables(context)
    return _plan(context, request).preview(NAME).of(request)


def run(context: SiteContext, request: WaveRequest, control: Control) -> Result:
    """Burn the images that the site names, wave by wave; interrupted, the same request looks first and goes on."""
    context = context.reporting(control.waiting)
    variables, plan = image_variables(context), _plan(context, request)
    control.require(plan.preview(NAME).of(request))
    with closing(context.adapters()) as adapters:
        return WaveRun(
            operation=NAME,
            context=context,
            adapters=adapters,
            request=request,
            plan=plan,
            work=firmware_work(context, adapters, variables),
            done=DONE,
        ).run(control)


def firmware_work(context: SiteContext, adapters: Adapters, variables: Mapping[str, Any]) -> NicFirmwareWork:
    """Return what burns the adapters of machines."""
    ssh = context.site.settings.ssh
    return NicFirmwareWork(
        playbooks=adapters.playbooks,
        journal=context.journal,
        address=SshAccess(ssh.user, context.site.path(ssh.private_key)).address,
        variables=variables,
        seconds=WAVE_S,
        permits=reboot_cap(context).taken,
    )


def image_variables(context: SiteContext) -> Mapping[str, Any]:
    """Return the site's role variables. Raises `UsageError` where they name no image."""
    variables = context.site.settings.configure.variables
    if not variables.get(IMAGES):
        raise UsageError(
            f"the site names no {IMAGES}",
            where=context.site.where("configure", "variables"),
            remedy="write there, for each PSID, version, url and sha256 of its image (roles/nic_firmware/README.md)",
        )
    return variables


def _plan(context: SiteContext, request: WaveRequest) -> WavePlan:
    """Return the machines that may be changed, one of each SKU first."""
    orders.checked_reason(request.reason)
    names = set(selected(context, request.nodes or ("*",)))
    nodes = [node for node in context.nodes() if node.name in names and node.stage is not Stage.RETIRED]
    known, skipped, able = node_ids(context), dict[str, str](), dict[str, Machine]()
    for node in nodes:
        if node.name not in known:
            skipped[node.name] = "the journal has no event of it yet; clusterctl discover first"
            continue
        try:
            settings_permitted(
                context.journal.state(known[node.name]),
                CLOCK.now(),
                from_pool=request.from_pool,
                acts={Act.NIC_FIRMWARE_PLAY},
            )
        except UsageError as error:
            skipped[node.name] = f"{error.message}; {error.remedy}"
        else:
            able[node.name] = Machine(known[node.name], kind=node.sku)
    return WavePlan(
        effects=dict.fromkeys(able, "burn the firmware that its adapters need, then reboot"),
        machines=able,
        policy=request.policy,
        skipped=skipped,
    )
