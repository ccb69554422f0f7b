"""node_exporter: the node's metrics are served on port 9100, and are this node's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

METRICS = Probe("node_exporter", ("http-get", "http://127.0.0.1:9100/metrics?collect%5B%5D=uname"))
_NAME = "node_exporter"
_UNAME = re.compile(r'^node_uname_info\{[^}]*nodename="(?P<host>[^"]*)"', re.MULTILINE)
_REMEDY = "run systemctl status prometheus-node-exporter on the node; configure the node again"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    result = readings.result(METRICS)
    if result.rc != 0:
        cause = f"node_exporter does not answer on port 9100: {result.error_output}"
        yield Finding(check=_NAME, verdict=Verdict.FAIL, code=Code.SERVICE_MUTE, cause=cause, remedy=_REMEDY)
        return
    match = _UNAME.search(result.stdout)
    if match is None:
        raise ParseError("port 9100 answers, but not as node_exporter: no node_uname_info", where="node_exporter")
    host = match["host"].split(".")[0]
    if host != expected.name:
        cause = "the metrics carry another host's name"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.WRONG_HOST_NAME,
            cause=cause,
            measured=host,
            expected=expected.name,
            remedy=_REMEDY,
        )
    else:
        yield passed(_NAME, "node_exporter answers on port 9100")


CHECK = Check(
    _NAME,
    (METRICS,),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("root_writable"),
        Cause("disk_space"),
    ),
)
