"""What an answer may be written from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from clusterctl.edges.pxe.answers import ReleaseSeries, network_files
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.formats.host import netplan, networkd
from clusterctl.formats.host import network as resolv_conf
from tests.edges.pxe_answers.jobs import job
from tests.formats.host_networks import NETWORKS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "node 1"),
        ("name", "node$(id)"),
        ("user", "root; id"),
        ("boot_mac", "52:54:00:00:00:0G"),
        ("attempt", "http://10.9.0.1/t/x y"),
        ("attempt", "ftp://10.9.0.1/t/0"),
        ("server", "10.9.0.1:8080"),
        ("mirror", "http://mirror.example/`id`"),
        ("proxy", "http:///"),
        ("iso", "../etc/shadow iso"),
        ("console", "ttyS0 init=/bin/sh"),
        ("packages", ("--reinstall",)),
        ("time_servers", ("ntp.example\nFallbackNTP=",)),
        ("authorized_key", ""),
        ("authorized_key", "ssh-ed25519 AAAA\nssh-rsa BBBB"),
        ("files", {"/etc/../etc/shadow x": ""}),
        ("time", datetime(2026, 1, 1)),  # noqa: DTZ001 - that it has no zone is the point
    ],
)
def test_what_could_break_out_of_a_line_is_refused(field: str, value: Any) -> None:
    """Site files are written by people: a blank or a quote must not become a kernel argument or a command."""
    with pytest.raises(UsageError) as caught:
        job(**{field: value})
    assert caught.value.where


@pytest.mark.parametrize("series", ReleaseSeries)
def test_no_network_of_the_site_s_is_no_file(series: ReleaseSeries) -> None:
    """The host asks by DHCP, as its installer did."""
    assert network_files(HostNetwork(), series) == {}


def test_the_network_is_configured_in_the_format_of_the_release() -> None:
    """Netplan for Ubuntu; networkd and resolv.conf for Debian; udev's rules for IPoIB, which neither can express, for both."""
    jammy, noble, bookworm = (network_files(NETWORKS["rails"], series) for series in ReleaseSeries)
    assert jammy == noble
    assert set(noble) == {netplan.FILE, networkd.UDEV_RULES}
    assert set(bookworm) > {f"{networkd.FOLDER}/10-clusterctl-ib1.network", networkd.UDEV_RULES}
    assert netplan.FILE not in bookworm
    static = network_files(NETWORKS["static"], ReleaseSeries.BOOKWORM)[resolv_conf.FILE]
    assert "nameserver 10.20.0.2\nnameserver 10.20.0.3\n" in static
