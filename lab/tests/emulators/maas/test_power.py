"""The lab's MAAS switches machines through BMCs as MAAS does: it tries again what fails; a rejected login up to MAAS 3.5."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from clusterctl.ports import Deadline, InstallState
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.maas.bmc import PowerError, RedfishPower
from clusterctl_lab.emulators.maas.faults import Faults
from tests.edges.maas.kit import Lab, until
from tests.edges.maas.testca import Ca
from tests.ports import reserve_port


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def test_a_bmc_that_fails_some_requests_is_asked_again(lab):
    """A BMC that answers 503 now and then fails neither a commissioning nor an install."""
    machine = lab.world.machines["node001"]
    moody = replace(machine, bmc=replace(machine.bmc, quirks=frozenset({BmcQuirk.UNAVAILABLE})))
    lab.run(lab.world.replace(moody))
    deadline = Deadline.after(120)
    installer, target = lab.installer(), lab.target()
    for _ in range(2):
        installer.prepare(target, deadline)
        until(installer, target, InstallState.READY)
        installer.start(target, deadline)
        until(installer, target, InstallState.INSTALLED)
        installer.release(target, deadline)
        until(installer, target, InstallState.READY)


@pytest.mark.parametrize(
    ("version", "action", "logins"),
    [("3.5.13", "query", 6), ("3.5.13", "on", 42), ("3.6.2", "query", 1), ("3.6.2", "on", 1)],
)
def test_rejected_logins_are_tried_again_up_to_3_5(tmp_path, version, action, logins):
    """Six tries of a request, seven of a power action; from 3.6 on one login in all."""
    faults, seen = Faults(version=version), 0

    async def reject(_: web.BaseRequest) -> web.Response:
        nonlocal seen
        seen += 1
        return web.Response(status=401)

    async def scenario() -> None:
        ca, address = Ca(tmp_path), "127.0.0.1"
        runner = web.ServerRunner(web.Server(reject))
        await runner.setup()
        port = reserve_port(address)
        await web.TCPSite(runner, address, port, ssl_context=ca.server_context(address)).start()
        driver = RedfishPower(ssl.create_default_context(cafile=str(ca.file)))
        driver.retries_logins = lambda: faults.retries_logins
        try:
            with pytest.raises(PowerError, match="authorization failed"):
                await getattr(driver, action)(
                    {"power_address": f"{address}:{port}", "power_user": "root", "power_pass": "old"}
                )
        finally:
            await runner.cleanup()

    asyncio.run(scenario())
    assert seen == logins
