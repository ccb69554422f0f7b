"""What tests expect of a machine; a case that differs replaces fields with `dataclasses.replace`."""

from __future__ import annotations

from clusterctl.fleet.hardware.sku import BlueFields, RootDisk, Sku

H100_X8 = Sku(
    name="lab",
    manufacturer="Dell",
    model="PowerEdge XE9680",
    gpu_count=8,
    gpu_model="H100",
    hca_count=8,
    hca_model="ConnectX-7",
    hca_rate_gbps=400,
    cpu_count=2,
    memory_gib=2048,
    data_drive_count=4,
    root_disk=RootDisk(),
    limits="lab",
    bluefields=BlueFields(count=1, mode="nic", firmware="32.43.1014", link_gts=32.0, link_width=16),
)
