"""Lines of a log that a rule knows: all kinds, each with its first time and place, and their number."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl.fleet.blame import Layer
from clusterctl.formats.job_lines import TimeReader
from clusterctl.jobs.evidence import Observation, Source
from clusterctl.jobs.scan import MAX_KINDS, LogFile, scan

AT = datetime(2026, 11, 1, 13, tzinfo=UTC)
REMOTE = "[rank{}]: ncclRemoteError: A call failed"


def scanned(text: str, source: Source = Source.JOB, host: str = "n1", piece: int = 1 << 20) -> tuple[Observation, ...]:
    data, at, pieces = text.encode(), 0, []
    while at < len(data):
        end = data.find(b"\n", min(at + piece, len(data)))
        end = len(data) if end < 0 else end + 1
        pieces.append((at, data[at:end]))
        at = end
    return scan(pieces, LogFile(name="train.log", host=host, source=source), TimeReader(AT))


def test_each_rank_is_an_observation_of_its_own() -> None:
    found = scanned("".join(f"{REMOTE.format(rank)}\n" for rank in range(200)) * 2)
    assert {one.rank for one in found} >= set(range(64))
    assert sum(one.times for one in found) == 400


def test_a_line_without_a_time_has_that_of_the_line_above() -> None:
    found = scanned("[2026-11-01 12:00:01] step\nchatter\n" + REMOTE.format(3) + "\n")
    assert found[0].at == datetime(2026, 11, 1, 12, 0, 1, tzinfo=UTC)


def test_the_place_can_be_looked_up() -> None:
    text = "hello\n" * 1000 + REMOTE.format(3) + "\n"
    (one,) = scanned(text, piece=100)
    assert one.place == "train.log at byte 6000"
    assert text.encode()[6000:].startswith(b"[rank3]")


def test_every_gpu_that_is_lost_is_found() -> None:
    """Lines that differ only in digits may name several parts."""
    line = "[Sun Nov  1 12:00:06 2026] NVRM: Xid (PCI:0000:{}b:00): 79, pid=7, GPU has fallen off the bus.\n"
    found = scanned("".join(line.format(gpu) for gpu in range(8)), Source.KERNEL)
    assert [one.meaning.parts["gpu"] for one in found] == [f"0000:{gpu}b:00.0" for gpu in range(8)]


def test_rules_for_programs_are_not_applied_to_kernel_logs() -> None:
    assert scanned("[Sun Nov  1 12:00:06 2026] systemd: ValueError: x\n", Source.KERNEL) == ()


def test_a_line_of_a_mebibyte_is_read_around_its_word() -> None:
    (one,) = scanned("x" * (1 << 20) + " CUDA error: uncorrectable ECC error encountered " + "y" * (1 << 20) + "\n")
    assert one.rule == "cuda_ecc"
    assert len(one.text) <= 500


def test_nccl_names_its_host() -> None:
    (one,) = scanned("node7:1:2 [0] net.cc NCCL WARN NET/IB : Got async event : port error\n", host="")
    assert one.host == "node7"


def test_a_progress_bar_hides_no_line() -> None:
    """Bars write over their line: what follows a carriage return is a line of its own, as are lines with CRLF."""
    bar = ' 50%|##  | 5/10\rTraceback (most recent call last):\n  File "/home/ada/t.py", line 3, in f\n 60%|##\rKeyError: 3\r 61%|\n'
    (one,) = scanned(bar)
    assert (one.text, one.meaning.parts["frame"]) == ("KeyError: 3", "/home/ada/t.py")
    (two,) = scanned("step 1\r\nValueError: x\r\nend\r\n")
    assert (two.text, two.place) == ("ValueError: x", "train.log at byte 8")


def test_kinds_are_bounded() -> None:
    """A hostile log does not fill the memory."""
    found = scanned("".join(f"{'abcdefghij'[n % 10] * (n // 10 % 97 + 1)}{n}Error: x\n" for n in range(MAX_KINDS + 50)))
    assert len(found) <= MAX_KINDS


def test_control_characters_are_visible() -> None:
    (one,) = scanned("\x1b[2JValueError: x \x07\n")
    assert one.text.isprintable()


def test_a_message_from_before_the_job_hides_none_of_its_own() -> None:
    """A kernel log goes back to the boot, when links come up: the first line of a kind that is the job's counts."""
    lines = "".join(
        f"2026-11-01T{hour}:00:00.000000+00:00 n1 kernel: mlx5_core 0000:18:00.0 mlx5_0: Port: 1 Link DOWN\n"
        for hour in ("08", "09", "11")
    )
    since = datetime(2026, 11, 1, 10, tzinfo=UTC)
    log = LogFile(name="kernel.log", host="n1", source=Source.KERNEL, since=since)
    (found,) = scan([(0, lines.encode())], log, TimeReader(datetime(2026, 11, 2, tzinfo=UTC)))
    assert found.at == datetime(2026, 11, 1, 11, tzinfo=UTC)


def test_a_message_of_the_boot_hides_no_other_kind_of_the_kernel() -> None:
    """A clock that is marked unstable and a server of NFS that is silent are both about the node as a whole."""
    lines = (
        "[   68.9] clocksource: timekeeping watchdog on CPU0: Marking clocksource 'tsc' as unstable because of skew\n"
        "[  191.9] nfs: server 10.0.0.9 not responding, still trying\n"
        "[  231.9] nfs: server 10.0.0.9 not responding, still trying\n"
    )
    found = scanned(lines, Source.KERNEL)
    assert [(one.meaning.blame.layer, one.times) for one in found] == [(Layer.SYSTEM_SOFTWARE, 1), (Layer.STORAGE, 2)]
