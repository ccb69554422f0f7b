"""Sends the recorded requests to the lab's MAAS, one after the other, with ids translated, and keeps the answers."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import time
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any
from urllib.parse import unquote

import aiohttp

from clusterctl_lab.emulators.maas.bmc import Parameters, PowerError
from clusterctl_lab.emulators.maas.model import Node
from clusterctl_lab.emulators.maas.oauth import Keys, User
from clusterctl_lab.emulators.maas.server import LabMaas
from clusterctl_lab.emulators.maas.service import Service
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Bmc, Drive, Machine
from clusterctl_lab.world import Delays, World
from tests.edges.maas.kit import Hosts
from tests.edges.maas.recordings import Recording
from tests.ports import reserve_port

ADDRESS, PORT = "127.92.0.2", reserve_port("127.92.0.2")
OPERATOR_KEY = "x3consumerkey00001:operatortoken:operatorsecret"
MACS = {"n1": "52:54:00:00:00:10", "n2": "52:54:00:00:00:14", "z1": "52:54:00:00:00:77"}


class ScriptedPower:
    """Meets `PowerDriver` for machines whose BMCs are scripted: `dead` refuses connections, `slow` never finishes."""

    def __init__(self) -> None:
        self.dead = False
        self.slow = False
        self._on: set[str] = set()
        self._waiting: list[asyncio.Event] = []

    async def on(self, parameters: Parameters) -> None:
        self._check()
        if self.slow:
            released: asyncio.Event = asyncio.Event()
            self._waiting.append(released)
            await released.wait()
        self._on.add(parameters["power_address"])

    async def off(self, parameters: Parameters) -> None:
        self._check()
        self._on.discard(parameters["power_address"])

    async def restart(self, parameters: Parameters) -> None:
        self._check()

    async def query(self, parameters: Parameters) -> str:
        self._check()
        return "on" if parameters["power_address"] in self._on else "off"

    def hurry(self) -> None:
        """The slow BMC gets done."""
        self.slow = False
        for released in self._waiting:
            released.set()

    def _check(self) -> None:
        if self.dead:
            raise PowerError("Could not contact BMC: connection refused (simulated)")


def machine(name: str, index: int) -> Machine:
    """A machine with the recorded one's MAC and drives."""
    drives = (
        Drive("Disk.Bay.0", f"{name}-nvme0n1", "ACME-SSD", 960197124096, boot=True),
        Drive("AHCI.Slot.1", f"{name}-sda", "ACME-SSD", 480103981056),
    )
    return Machine(
        name, index, f"SN-{name}", "A01", 1, Bmc("", "", "", ""), f"10.10.0.{50 + index}", MACS[name], (), (), drives
    )


@dataclass(frozen=True)
class Reply:
    status: int
    content_type: str
    headers: dict[str, str]
    body: Any


class Replay:
    """A MAAS of its own with the recorded users' keys. `known` maps recorded ids to ours."""

    def __init__(self, admin_key: str) -> None:
        self.admin_key = admin_key
        layout = Layout(IPv4Network("10.10.0.0/16"))
        machines = {name: machine(name, index) for index, name in enumerate(MACS, 1)}
        self.world = World(layout, machines, Delays(0, 0, 0, 0, netboot_timeout=1000))
        self.hosts = Hosts()
        self.world.hosts = self.hosts
        self.power = ScriptedPower()
        keys = Keys([User("admin", admin_key, admin=True), User("operator", OPERATOR_KEY)])
        self.maas = LabMaas(Service(self.world, keys, self.power))
        self.service = self.maas.service
        self.known: dict[str, str] = {"6dmhxs": "rack01"}
        self._nonces = 0
        self._last_nonce = ""
        self._http: aiohttp.ClientSession

    async def open(self, tls: ssl.SSLContext, trust: ssl.SSLContext) -> None:
        await self.maas.open(ADDRESS, PORT, tls)
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust))

    async def close(self) -> None:
        await self._http.close()
        self.power.hurry()
        await self.maas.close()

    # --- what happens between the requests -------------------------------------------------------------------------

    def node(self, name: str) -> Node:
        node = self.service.store.by_hostname(name)
        assert node is not None, name
        return node

    async def settle(self) -> None:
        await self.service.lifecycle.background.settle()

    async def boots(self, name: str) -> None:
        """The machine boots from the network and follows MAAS; then, if installed, it boots from its disk."""
        await self.settle()
        await self.maas.netboot(self.world.machines[name])
        await self.settle()
        if not self.node(name).netboot:
            await self.service.boot.power_changed(self.world.machines[name], on=True)

    async def ready(self, name: str) -> None:
        """Whatever it was, it is Ready now."""
        await self.settle()
        node = self.node(name)
        if node.status is Status.BROKEN:
            node.status = Status.READY
        elif node.status is not Status.READY:
            self.service.lifecycle.release(node)
        await self.settle()

    async def allocated(self, name: str) -> None:
        await self.ready(name)
        self.node(name).status, self.node(name).owner = Status.ALLOCATED, "admin"

    async def deploys(self, name: str) -> None:
        await self.ready(name)
        node = self.node(name)
        node.osystem, node.series, node.kernel = "ubuntu", "jammy", "ga-22.04"
        self.service.lifecycle.deploy(node, "admin")

    # --- requests -------------------------------------------------------------------------------------------------

    async def send(self, recording: Recording) -> Reply:
        path = self.ours(recording.path)
        headers = {"Authorization": self._authorization(recording)}
        body: dict[str, Any] = {"headers": {name: value for name, value in headers.items() if value}}
        if recording.encoding in ("multipart", "form"):
            body["data"] = self._form(recording)
        elif recording.encoding == "json":
            body["json"] = json.loads(self.ours(json.dumps(recording.data)))
        elif recording.encoding is not None:
            body["data"] = str(recording.data)
            body["headers"]["Content-Type"] = recording.encoding
        async with self._http.request(recording.method, f"https://{ADDRESS}:{PORT}{path}", **body) as answer:
            raw = await answer.read()
            content_type = answer.content_type
            value = json.loads(raw) if content_type == "application/json" else raw.decode()
            reply = Reply(answer.status, content_type, dict(answer.headers), value)
        self._learn(recording, reply)
        return reply

    def ours(self, text: str) -> str:
        """The text with the recorded ids replaced by ours."""
        for theirs, mine in self.known.items():
            text = text.replace(theirs, mine)
        return text

    def _learn(self, recording: Recording, reply: Reply) -> None:
        if isinstance(reply.body, dict) and isinstance(recording.body, dict) and "system_id" in reply.body:
            self.known.setdefault(recording.body["system_id"], reply.body["system_id"])

    def _form(self, recording: Recording) -> aiohttp.FormData:
        form = aiohttp.FormData(default_to_multipart=recording.encoding == "multipart")
        for name, value in recording.data.items():
            for item in value if isinstance(value, list) else [value]:
                form.add_field(name, self.ours(str(item)))
        return form

    def _authorization(self, recording: Recording) -> str:
        consumer, token, secret = self.admin_key.split(":")
        special = {
            "basic-auth": lambda: "Basic " + base64.b64encode(b"admin:admin").decode(),
            "oauth-empty": lambda: "OAuth ",
            "nonce-reused": lambda: self._oauth(consumer, token, secret, nonce=self._last_nonce),
            "timestamp-10min-old": lambda: self._oauth(consumer, token, secret, age=600),
        }
        if recording.name in special:
            return special[recording.name]()
        keys = {
            "operator": OPERATOR_KEY.split(":"),
            "bad-secret": (consumer, token, "wrong"),
            "bad-token": (consumer, "nosuchtoken", secret),
            "bad-consumer": ("nosuchconsumer", token, secret),
        }
        if recording.user == "anonymous":
            return ""
        return self._oauth(*keys.get(recording.user, (consumer, token, secret)))

    def _oauth(self, consumer: str, token: str, secret: str, nonce: str = "", age: int = 0) -> str:
        self._nonces += 1
        self._last_nonce = nonce or f"9{self._nonces:029d}"
        return (
            'OAuth oauth_version="1.0", oauth_signature_method="PLAINTEXT", '
            f'oauth_consumer_key="{consumer}", oauth_token="{token}", oauth_signature="%26{secret}", '
            f'oauth_nonce="{self._last_nonce}", oauth_timestamp="{int(time.time()) - age}"'
        )


def plain(text: str) -> str:
    """A text with nonces and time stamps made alike."""
    return re.sub(r"\d{9,}", "N", unquote(text))
