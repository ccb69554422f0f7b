"""The JSON API of what a node's page has on demand: logs, figures, parts; and what Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from clusterctl.operations import bmc_log, node_logs
from clusterctl.operations.log_documents import bmc_log_json, figure_json, logs_json, part_json
from clusterctl.operations.metrics import FleetMetrics
from clusterctl.operations.node_figures import figure_places
from clusterctl.operations.operation import Control, current_time
from clusterctl.operations.scrape_targets import site_targets
from clusterctl_web.api import answering
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.node_details import MachineReads, known_part, logs_request
from clusterctl_web.openapi import BASE


@dataclass(frozen=True, slots=True)
class NodeApi:
    """Each method answers one path; it only reads. What is read of machines is for operators."""

    live: LiveFleet
    figures: FleetMetrics
    reads: MachineReads

    def routes(self) -> list[Route]:
        paths: dict[str, Callable[[Request], Any]] = {
            "/nodes/{name}/logs": self._logs,
            "/nodes/{name}/bmc-log": self._bmc_log,
            "/nodes/{name}/figures": self._figures,
            "/parts/{serial:path}": self._part,
            "/scrape-targets": self._targets,
        }
        return [Route(BASE + path, answering(answer), methods=["GET"]) for path, answer in paths.items()]

    def _logs(self, request: Request) -> Any:
        asked = logs_request(request, self.live.node(request.path_params["name"]).name)
        with self.reads.reading(request):
            return logs_json(node_logs.run(self.live.context, asked, Control()))

    def _bmc_log(self, request: Request) -> Any:
        name = self.live.node(request.path_params["name"]).name
        with self.reads.reading(request):
            return bmc_log_json(name, bmc_log.read(self.live.context, name, Control()))

    def _figures(self, request: Request) -> Any:
        node = self.live.node(request.path_params["name"])
        return {"figures": [figure_json(place) for place in figure_places(node.name, self.figures.figures())]}

    def _part(self, request: Request) -> Any:
        """Return the newest events first."""
        serial = request.path_params["serial"]
        events, returned = known_part(self.live.context, serial)
        return part_json(serial, reversed(events), returned, current_time())

    def _targets(self, request: Request) -> Any:
        """Return the groups of Prometheus's service discovery over HTTP."""
        del request
        return site_targets(self.live.context.site, self.live.known())
