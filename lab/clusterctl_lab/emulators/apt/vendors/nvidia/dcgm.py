"""DCGM 4 and its exporter.

Names and the epoch as in NVIDIA's pages (docs.nvidia.com/datacenter/dcgm/latest/installation.html); the exporter's
options and unit as in NVIDIA/dcgm-exporter. The stand-ins report whether a host engine runs, and the GPUs that
nvidia-smi reports.
"""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn

DCGM_VERSION = "4.4.1"
EXPORTER_VERSION = "4.5.0"
_VERSION = f"1:{DCGM_VERSION}-1"
_ENGINE = "/run/clusterctl-lab-dcgm"

_HOST_ENGINE = """\
#!/bin/sh
exec sleep infinity
"""

_HOST_ENGINE_UNIT = f"""\
[Unit]
Description=NVIDIA DCGM service (stand-in of the rehearsal lab)

[Service]
ExecStart=/usr/bin/nv-hostengine -n
RuntimeDirectory={_ENGINE.removeprefix("/run/")}

[Install]
WantedBy=multi-user.target
"""

_DCGMI = f"""\
#!/bin/sh
if [ "$*" != "discovery -l" ]; then
    echo "the lab's dcgmi knows discovery -l" >&2
    exit 2
fi
if [ ! -d {_ENGINE} ]; then
    echo "Error: unable to establish a connection to the specified host: localhost"
    exit 255
fi
echo "$(nvidia-smi -L | grep -c '^GPU ') GPUs found."
nvidia-smi -L
"""

_EXPORTER = f'''\
#!/usr/bin/python3 -IS
"""Report for each GPU what nvidia-smi reports; a field that it does not have is left out."""
import argparse, http.server, os, subprocess, sys

SOURCES = {{"DCGM_FI_DEV_GPU_TEMP": "temperature.gpu", "DCGM_FI_DEV_FB_USED": "memory.used"}}
parser = argparse.ArgumentParser("dcgm-exporter")
parser.add_argument("-f", "--collectors", required=True)
parser.add_argument("-a", "--address", default=":9400")
parser.add_argument("-r", "--remote-hostengine-info", required=True)
options = parser.parse_args()
if not os.path.isdir("{_ENGINE}"):
    sys.exit("no host engine at " + options.remote_hostengine_info)
with open(options.collectors) as file:
    rows = [line.split(",") for line in file if line.strip() and not line.startswith("#")]
fields = [row[0].strip() for row in rows if row[0].strip() in SOURCES]


def metrics():
    query = "--query-gpu=" + ",".join(["index", "uuid"] + [SOURCES[field] for field in fields])
    argv = ["/usr/bin/nvidia-smi", query, "--format=csv,noheader,nounits"]
    for line in subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines():
        index, uuid, *values = line.split(", ")
        for field, value in zip(fields, values):
            yield f'{{field}}{{{{gpu="{{index}}",UUID="{{uuid}}"}}}} {{value}}\\n'


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = "".join(metrics()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


host, _, port = options.address.rpartition(":")
http.server.HTTPServer((host, int(port)), Handler).serve_forever()
'''

_EXPORTER_UNIT = """\
[Unit]
Description=NVIDIA DCGM exporter (stand-in of the rehearsal lab)
After=nvidia-dcgm.service

[Service]
ExecStart=/usr/bin/dcgm-exporter -f /etc/dcgm-exporter/default-counters.csv -r embedded

[Install]
WantedBy=multi-user.target
"""


def packages() -> tuple[StandIn, ...]:
    core = {
        "/usr/bin/dcgmi": (_DCGMI, 0o755),
        "/usr/bin/nv-hostengine": (_HOST_ENGINE, 0o755),
        "/usr/lib/systemd/system/nvidia-dcgm.service": (_HOST_ENGINE_UNIT, 0o644),
    }
    exporter = {
        "/usr/bin/dcgm-exporter": (_EXPORTER, 0o755),
        "/etc/dcgm-exporter/default-counters.csv": ("DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature\n", 0o644),
        "/usr/lib/systemd/system/nvidia-dcgm-exporter.service": (_EXPORTER_UNIT, 0o644),
    }
    name = "datacenter-gpu-manager"
    same = f"{name}-4-core (= {_VERSION})"
    return (
        StandIn(f"{name}-4-core", _VERSION, (), core),
        StandIn(f"{name}-4-cuda12", _VERSION, (same,)),
        StandIn(f"{name}-4-proprietary", _VERSION, (same,)),
        StandIn(f"{name}-4-proprietary-cuda12", _VERSION, (same, f"{name}-4-proprietary (= {_VERSION})")),
        StandIn(f"{name}-exporter", f"{EXPORTER_VERSION}-1", (f"{name}-4-core",), exporter),
    )
