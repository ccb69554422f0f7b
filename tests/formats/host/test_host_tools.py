from __future__ import annotations

import functools

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.cpu_memory import parse_memory_modules, parse_processors
from clusterctl.formats.host.kernel_log import limited_links, parse_dmesg, sxids, xids
from clusterctl.formats.host.linux import parse_df, parse_failed_units, parse_memory_total, parse_swaps
from clusterctl.formats.host.pci import normal_address, parse_lspci
from tests.formats.samples import sample


def test_dmesg_recording_with_a_hung_gsp() -> None:
    """Every message of the recording, and its five Xid 119 of one GPU."""
    text = sample("dmesg-with-xid-119.log")
    messages = parse_dmesg(text)
    assert len(messages) == len([line for line in text.splitlines() if line.startswith("[")])
    errors = xids(messages)
    assert {(xid.pci, xid.code) for xid in errors} == {("0000:9b:00.0", 119)}
    assert len(errors) == text.count("Xid (PCI")


def test_a_gpu_off_the_bus_is_xid_79_with_or_without_its_line() -> None:
    """The driver does not always print the Xid line; never is it counted twice."""
    reported = "[ 1.0] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
    plain = "[ 2.0] NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.\n"
    split = (
        "[ 3.0] NVRM: The NVIDIA GPU 0000:1b:00.0\n[ 3.1] NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "[ 3.2] NVRM: fallen off the bus and is not responding to commands.\n"
    )
    for text in (reported, plain, split, reported + plain + split):
        assert [(x.pci, x.code) for x in xids(parse_dmesg(text))] == [("0000:1b:00.0", 79)]


def test_sxid_and_limited_links() -> None:
    """An NVSwitch error keeps its severity word; the PCI core's complaint keeps both bandwidths."""
    switch = "[ 1.0] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
    (sxid,) = sxids(parse_dmesg(switch))
    assert (sxid.code, sxid.pci, sxid.text.split(",")[0]) == (20034, "0000:06:00.0", "Fatal")
    narrow = (
        "[ 1.0] mlx5_core 0000:9c:00.0: 252.056 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at "
        "0000:97:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)\n"
    )
    (link,) = limited_links(parse_dmesg(narrow))
    assert (link.pci, link.have, link.capable) == ("0000:9c:00.0", 252.056, 504.112)


def test_an_empty_kernel_log_proves_nothing() -> None:
    """Dmesg without a message is refused."""
    with pytest.raises(ParseError):
        parse_dmesg("")


def test_lspci_recording() -> None:
    """517 devices; eight GPUs and eight ConnectX-7 at x16 and 32 GT/s."""
    text = sample("lspci-vvv.gz")
    devices = parse_lspci(text)
    assert len(devices) == sum(1 for line in text.splitlines() if line[:1].strip())
    for name in ("NVIDIA Corporation Device 2330", "MT2910 Family [ConnectX-7]"):
        links = [str(d.current) for d in devices if name in d.name]
        assert links == ["x16 at 32 GT/s"] * 8


def test_lspci_without_privileges_shows_no_link() -> None:
    """The device is there, its link unmeasured; no device at all is a legal answer of `-d`."""
    (device,) = parse_lspci(
        "0000:18:00.0 Infiniband controller: Mellanox MT2910 [ConnectX-7]\n\tCapabilities: <access denied>\n"
    )
    assert device.current is None
    assert parse_lspci("") == ()
    with pytest.raises(ParseError):
        parse_lspci("lspci: no\n")


@pytest.mark.parametrize("address", ["00000000:1B:00.0", "1b:00.0", "0000:1b:00", "0000:1B:00.0"])
def test_pci_addresses_have_one_spelling(address: str) -> None:
    """nvidia-smi's, lspci's and the kernel's way of writing the same device."""
    assert normal_address(address) == "0000:1b:00.0"


def test_memory_modules() -> None:
    """Sizes in MB, GB and TB; an empty slot has none; an unknown size is refused."""
    form = "Handle 0x1\nMemory Device\n\tSize: {}\n\tLocator: {}\n\n"
    text = "# dmidecode\n\n" + "".join(
        form.format(*p) for p in (("64 GB", "A1"), ("65536 MB", "A2"), ("No Module Installed", "A3"))
    )
    modules = parse_memory_modules(text)
    assert [(m.locator, m.gib) for m in modules] == [("A1", 64), ("A2", 64), ("A3", 0)]
    for bad in ("", form.format("much", "A1")):
        with pytest.raises(ParseError):
            parse_memory_modules(bad)


def test_processors() -> None:
    """Central processors only, by socket; one without a status, or none at all, is refused."""
    form = "Handle 0x1\nProcessor Information\n\tSocket Designation: {}\n\tType: {}\n\tStatus: {}\n\n"
    rows = (
        ("CPU1", "Central Processor", "Populated, Enabled"),
        ("CPU2", "Central Processor", "Unpopulated"),
        ("P1", "DSP Processor", "Populated, Enabled"),
    )
    sockets = parse_processors("# dmidecode\n\n" + "".join(form.format(*row) for row in rows))
    assert [(socket.designation, socket.works) for socket in sockets] == [("CPU1", True), ("CPU2", False)]
    for bad in ("", "Processor Information\n\tSocket Designation: CPU1\n"):
        with pytest.raises(ParseError):
            parse_processors(bad)


def test_small_tables_of_linux_tools() -> None:
    """df, meminfo, swapon and systemctl, whole and broken."""
    df = "Filesystem 1-blocks Used Available Capacity Mounted on\noverlay 1000 400 600 40% /\n/dev/sda1 2000 1 1999 1% /a b\n"
    assert [(f.mount, f.free) for f in parse_df(df, 2)] == [("/", 600), ("/a b", 1999)]
    assert parse_memory_total("MemTotal:       1048576 kB\nMemFree: 1 kB\n") == 1.0
    assert parse_swaps("/dev/sda2 1024\n/swap file 5\n") == (("/dev/sda2", 1024), ("/swap file", 5))
    assert parse_swaps("") == ()
    assert parse_failed_units("a.service loaded failed failed A thing\n● b.mount not-found failed failed b\n") == (
        "a.service",
        "b.mount",
    )
    assert parse_failed_units("") == ()
    for parse in (functools.partial(parse_df, paths=2), parse_memory_total, parse_swaps, parse_failed_units):
        with pytest.raises(ParseError):
            parse("%$ garbage\n")
