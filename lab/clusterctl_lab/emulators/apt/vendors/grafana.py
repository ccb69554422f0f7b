"""Stand-in packages for Grafana's repository: `alloy` and `loki`, which no distribution has.

Names, paths and unit as in github.com/grafana/alloy/tree/main/packaging. The role creates the account, because
stand-ins run no maintainer scripts.
"""

from __future__ import annotations

from pathlib import Path

from clusterctl_lab.emulators.apt.emulated_package import StandIn

ALLOY_VERSION = "1.10.2"
"""The version that the roles' tests request."""

NEWER_ALLOY_VERSION = "1.11.0"
"""A newer version, as in a real repository: a role that does not pin its version would install it."""

LOKI_VERSION = "3.5.5"

_PROGRAMS = Path(__file__).with_name("grafana_programs")

_ALLOY_UNIT = """\
[Unit]
Description=Grafana Alloy (stand-in of the rehearsal lab)

[Service]
Restart=always
User=alloy
EnvironmentFile=/etc/default/alloy
ExecStart=/usr/bin/alloy run $CUSTOM_ARGS --storage.path=/var/lib/alloy/data $CONFIG_FILE

[Install]
WantedBy=multi-user.target
"""

_LOKI_UNIT = """\
[Unit]
Description=Loki (stand-in of the rehearsal lab)

[Service]
ExecStart=/usr/bin/loki
DynamicUser=yes

[Install]
WantedBy=multi-user.target
"""


def packages() -> tuple[StandIn, ...]:
    return (_alloy(ALLOY_VERSION), _alloy(NEWER_ALLOY_VERSION), _loki())


def _alloy(version: str) -> StandIn:
    files = {
        "/usr/bin/alloy": (_program("alloy"), 0o755),
        "/etc/alloy/config.alloy": ("// nothing yet\n", 0o640),
        "/etc/default/alloy": ('CONFIG_FILE="/etc/alloy/config.alloy"\nCUSTOM_ARGS=""\n', 0o644),
        "/usr/lib/systemd/system/alloy.service": (_ALLOY_UNIT, 0o644),
    }
    return StandIn("alloy", f"{version}-1", ("python3",), files)


def _loki() -> StandIn:
    files = {
        "/usr/bin/loki": (_program("loki"), 0o755),
        "/usr/lib/systemd/system/loki.service": (_LOKI_UNIT, 0o644),
    }
    return StandIn("loki", LOKI_VERSION, ("python3",), files)


def _program(name: str) -> str:
    return "#!/usr/bin/python3\n" + (_PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
