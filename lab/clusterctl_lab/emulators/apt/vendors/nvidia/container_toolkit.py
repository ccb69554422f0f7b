"""The container toolkit: nvidia-ctk, which writes and reads CDI specifications, and the units that refresh them.

Packages and units as NVIDIA/nvidia-container-toolkit has them since 1.18.0.
"""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn

VERSION = "1.18.0"
_PACKAGE_VERSION = f"{VERSION}-1"
_SPECIFICATION = "/var/run/cdi/nvidia.yaml"

_CTK = f"""\
#!/bin/sh
set -e
case "$*" in
    "cdi generate --output={_SPECIFICATION}")
        mkdir -p /var/run/cdi
        {{
            echo "cdiVersion: 0.5.0"
            echo "kind: nvidia.com/gpu"
            echo "devices:"
            nvidia-smi --query-gpu=index,uuid --format=csv,noheader | tr -d ' ' | tr ',' '\\n' | sed 's/.*/- name: "&"/'
            echo '- name: all'
        }} > {_SPECIFICATION}.new
        mv {_SPECIFICATION}.new {_SPECIFICATION}
        ;;
    "cdi list")
        [ ! -e {_SPECIFICATION} ] || sed -n 's,^- name: "*\\([^"]*\\)"*$,nvidia.com/gpu=\\1,p' {_SPECIFICATION}
        ;;
    *)
        echo "the lab's nvidia-ctk knows cdi list and cdi generate" >&2
        exit 1
        ;;
esac
"""

_SERVICE = f"""\
[Unit]
Description=Refresh the CDI specification of NVIDIA's GPUs (stand-in of the rehearsal lab)
ConditionPathExists=/usr/bin/nvidia-smi

[Service]
Type=oneshot
ExecStart=/usr/bin/nvidia-ctk cdi generate --output={_SPECIFICATION}

[Install]
WantedBy=multi-user.target
"""

_PATH = """\
[Unit]
Description=Refresh the CDI specification after changes (stand-in of the rehearsal lab)

[Path]
PathChanged=/usr/bin/nvidia-ctk

[Install]
WantedBy=multi-user.target
"""


def packages() -> tuple[StandIn, ...]:
    base = {
        "/usr/bin/nvidia-ctk": (_CTK, 0o755),
        "/usr/lib/systemd/system/nvidia-cdi-refresh.service": (_SERVICE, 0o644),
        "/usr/lib/systemd/system/nvidia-cdi-refresh.path": (_PATH, 0o644),
    }
    depends = ("nvidia-container-toolkit-base", "libnvidia-container-tools")
    same = f"(= {_PACKAGE_VERSION})"
    return (
        StandIn("nvidia-container-toolkit", _PACKAGE_VERSION, tuple(f"{name} {same}" for name in depends)),
        StandIn("nvidia-container-toolkit-base", _PACKAGE_VERSION, (), base),
        StandIn("libnvidia-container-tools", _PACKAGE_VERSION, (f"libnvidia-container1 {same}",)),
        StandIn("libnvidia-container1", _PACKAGE_VERSION),
    )
