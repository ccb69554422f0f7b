"""The deployer's own shell scripts, as far as they can be tried without a machine: its reports, requests and checks."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from importlib.resources import as_file, files
from pathlib import Path

import pytest

import clusterctl.edges.os_images
from clusterctl.edges.os_images.initramfs import SCRIPTS, script

pytestmark = pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")

CURL = r"""#!/bin/sh
# Answers by the next line of `answers`: CODE [BODY-FILE [EXIT-CODE]]; keeps what it was asked.
echo "$@" >> "$HERE/asked"
line=$(head -n 1 "$HERE/answers")
sed -i 1d "$HERE/answers"
set -- $line "$@"
code=$1 body=$2 exit_code=$3
out=
while [ $# -gt 0 ]; do
    [ "$1" = --output ] && out=$2
    shift
done
[ "$body" = - ] || cat "$HERE/$body" > "$out"
size=0
[ "$body" = - ] || size=$(wc -c < "$HERE/$body")
grep -q 'size_download' "$HERE/asked" && printf '%s %s' "$code" "$size" || printf '%s' "$code"
exit "$exit_code"
"""

SETTING = "PAUSE=0 PATIENCE=4 QUEUE=6 server=http://192.0.2.1:8080 token=feed"


class Deployer:
    """Runs pieces of the scripts under busybox, with a curl that gives prepared answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        curl = folder / "bin/curl"
        curl.parent.mkdir()
        curl.write_text(CURL)
        curl.chmod(0o755)
        (folder / "deploy.log").touch()

    def run(self, program: str, *answers: str) -> subprocess.CompletedProcess[str]:
        """`answers`: `CODE`, `CODE BODY-FILE` or `CODE BODY-FILE EXIT-CODE` of each request, in order."""
        lines = [
            " ".join((*answer.split(), "-", "0")[:3] if len(answer.split()) == 1 else (*answer.split(), "0")[:3])
            for answer in answers
        ]
        (self.folder / "answers").write_text("".join(f"{line}\n" for line in lines))
        (self.folder / "asked").unlink(missing_ok=True)
        with as_file(files(clusterctl.edges.os_images) / "deployer") as scripts:
            sourced = "".join(
                f". {scripts}/{name}; " for name in ("messages.sh", "http.sh", "machine.sh", "disk.sh", "erase.sh")
            )
            environment = {
                "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                "HERE": str(self.folder),
                "DEPLOYER_RUN": str(self.folder),
            }
            argv = ["busybox", "ash", "-u", "-c", f"{sourced} {SETTING}; {program}"]
            return subprocess.run(
                argv, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=600, check=False
            )

    @property
    def asked(self) -> int:
        return len((self.folder / "asked").read_text().splitlines())

    def body(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def deployer(tmp_path: Path) -> Deployer:
    return Deployer(tmp_path)


def test_a_controller_that_is_away_is_asked_again(deployer: Deployer) -> None:
    """No answer, its own failure and "busy" are waited out; then the answer counts."""
    deployer.body("answer.body", "root=/dev/sda\n")
    done = deployer.run('ask report && cat "$ANSWER"', "000 - 7", "502", "503", "200 answer.body")
    assert (done.returncode, done.stdout, deployer.asked) == (0, "root=/dev/sda\n", 4)


def test_over_https_each_request_is_for_the_named_key(deployer: Deployer) -> None:
    """Questions, messages, log and image: none goes to a server with another key. Without a key, none is pinned."""
    pinned = "--insecure --pinnedpubkey sha256//a+b/c="
    program = "service_key=a+b/c=; ask report; post_text progress hello; post_log; size=0; "
    deployer.run(program, "200", "200", "200")
    lines = (deployer.folder / "asked").read_text().splitlines()
    assert len(lines) == 3
    assert all(line.startswith(pinned) for line in lines)
    (deployer.folder / "asked").unlink()
    deployer.body("image", "0123456789")
    deployer.run("service_key=a+b/c=; image=/files/x; size=10; stream 3> image-of-disk", "200 image")
    assert (deployer.folder / "asked").read_text().startswith(pinned)
    (deployer.folder / "asked").unlink()
    deployer.run("ask report", "200")
    assert "pinnedpubkey" not in (deployer.folder / "asked").read_text()


PORTS = """\
port_of() {
    case $1 in
        01-02-00-00-00-00-01) echo eth0 ;;
        01-02-00-00-00-00-02) echo eth1 ;;
        *) return 1 ;;
    esac
}
ip() { :; }
udhcpc() { echo "$2" >> "$RUN/asked-ports"; [ "$2" = "$cabled" ]; }
"""


@pytest.mark.parametrize(
    ("bootif", "cabled", "used"),
    [
        ("01-02-00-00-00-00-01", "eth0", "eth0"),
        ("01-02-00-00-00-00-09,01-02-00-00-00-00-01,01-02-00-00-00-00-02", "eth1", "eth0 eth1"),
    ],
)
def test_the_port_with_an_address_is_the_one(deployer: Deployer, bootif: str, cabled: str, used: str) -> None:
    """One card from iPXE; after a boot over HTTPS all cards of the machine, of which one is in that network."""
    ran = deployer.run(f'{PORTS}\ncabled={cabled}; bring_up_network {bootif}; echo "$interface"')
    assert ran.stdout.splitlines()[-1] == cabled, ran.stderr
    assert (deployer.folder / "asked-ports").read_text().split() == used.split()


def test_a_refusal_is_final(deployer: Deployer) -> None:
    """409 is not asked again, and its text is reported."""
    deployer.body("why", "that is\nanother machine\n")
    done = deployer.run('ask report; echo "$? $(refusal)"', "409 why")
    assert (done.stdout.strip(), deployer.asked) == ("1 that is another machine", 1)


def test_a_missing_service_ends_the_install_too(deployer: Deployer) -> None:
    """After all its tries it gives up."""
    done = deployer.run("ask report; echo $?", *["000 - 7"] * 4)
    assert (done.stdout, deployer.asked) == ("2\n", 4)


def test_a_lost_answer_to_done_is_no_failure(deployer: Deployer) -> None:
    """The token dies with `done`: 404 after a try without an answer means that it was received."""
    assert deployer.run("post_done", "000 - 52", "404").returncode == 0


@pytest.mark.parametrize("answers", [("404",), ("503", "404"), ("409",)])
def test_done_that_was_refused_is_a_failure(deployer: Deployer, answers: tuple[str, ...]) -> None:
    """Nothing was lost on the way there: the controller does not want it."""
    done = deployer.run("post_done", *answers)
    assert done.returncode == 1
    assert "FAILED: the controller did not take the message" in done.stdout


def stream(deployer: Deployer, size: int, *answers: str) -> tuple[int, str]:
    """Exit code, and what went down the pipe."""
    program = (
        f'size={size}; image=/files/i; {{ stream 3>&1 > /dev/null; echo $? > "$HERE/code"; }} | cat > "$HERE/piped"'
    )
    deployer.run(program, *answers)
    return int((deployer.folder / "code").read_text()), (deployer.folder / "piped").read_text()


def test_a_broken_stream_goes_on_where_it_broke_off(deployer: Deployer) -> None:
    """Each byte once, in order; what failed outright sends nothing."""
    deployer.body("first", "abc")
    deployer.body("second", "de")
    assert stream(deployer, 5, "206 first 18", "000 - 7", "206 second") == (0, "abcde")
    asked = (deployer.folder / "asked").read_text().splitlines()
    assert [line.split("--range ")[1].split()[0] for line in asked] == ["0-", "3-", "3-"]


def test_a_server_that_starts_again_spoils_the_stream(deployer: Deployer) -> None:
    """200 to a later part is the whole file again: refused, not written twice."""
    deployer.body("first", "abc")
    assert stream(deployer, 5, "206 first 18", "200 first")[0] == 1


def test_a_place_in_the_queue_is_waited_for(deployer: Deployer) -> None:
    """503 does not use up the tries that failures have; the queue has an end as well."""
    deployer.body("all", "abcde")
    assert stream(deployer, 5, *["503"] * 6, "206 all") == (0, "abcde")
    assert stream(deployer, 5, *["503"] * 7)[0] == 1


def test_a_stream_that_never_comes_ends(deployer: Deployer) -> None:
    """Not for ever."""
    assert stream(deployer, 5, *["000 - 7"] * 4) == (1, "")


ORDERS = {
    "root": "/dev/nvme0n1",
    "time": "1795342466",
    "image": "/files/images/debian-12/aa/rootfs.tar.zst",
    "sha256": "ab" * 32,
    "size": "1000",
    "hostname": "node-1",
}


WRITE_IMAGE = 'stream() { cat "$HERE/image" >&3; }; TARGET=$HERE/target; root=/dev/nvme0n1; write_image; echo well'


def image(folder: Path, content: bytes) -> str:
    """Packed as images are; its checksum."""
    (folder / "target").mkdir()
    packed = subprocess.run(["zstd", "--stdout"], input=content, capture_output=True, check=True).stdout
    (folder / "image").write_bytes(packed)
    return hashlib.sha256(packed).hexdigest()


def a_tar(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_an_image_is_unpacked_in_one_pass(deployer: Deployer) -> None:
    """Its files are there, and its checksum was right."""
    checksum = image(deployer.folder, a_tar("etc"))
    done = deployer.run(f"sha256={checksum}; {WRITE_IMAGE}")
    assert (done.stdout, [each.name for each in (deployer.folder / "target").iterdir()]) == ("well\n", ["etc"])


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
@pytest.mark.parametrize(
    ("content", "checksum", "cause"),
    [
        (a_tar("x" * 256), "", "the image could not be unpacked: /dev/nvme0n1 is not bootable (/usr/bin/tar: "),
        (a_tar("etc"), "feed", "not feed: /dev/nvme0n1 is not bootable"),
    ],
    ids=["the disk does not take it", "another image"],
)
def test_an_image_that_is_not_on_the_disk_ends_it(
    deployer: Deployer, content: bytes, checksum: str, cause: str
) -> None:
    """The cause blames the disk or the image, with the first of tar's own words."""
    found = image(deployer.folder, content)
    done = deployer.run(f"sha256={checksum or found}; {WRITE_IMAGE}")
    assert done.returncode == 1
    assert cause in done.stdout
    assert "well" not in done.stdout


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("root", "/dev/sdz", "which this machine has not reported"),
        ("root", "/dev/nvme0n", "which this machine has not reported"),
        ("root", "/dev/../etc", "the answer names no disk to write"),
        ("root", "", "the answer names no disk to write"),
        ("root", "/dev/nvme0n1", "is no disk here"),
    ],
)
def test_orders_that_do_not_fit_the_report_are_not_obeyed(
    deployer: Deployer, field: str, value: str, words: str
) -> None:
    """It writes a disk that it has reported itself, and that is one; here none is."""
    deployer.body("report", "serial=S\ndisk=/dev/nvme0n1\tD\t\t1\t\t\n")
    reported = ORDERS | {field: value}
    assignments = " ".join(f"{name}={value}" for name, value in reported.items())
    done = deployer.run(f"{assignments}; check_answer", "200", "200")
    assert done.returncode == 1
    assert words in done.stdout


@pytest.mark.parametrize("name", ["init", "probe.sh", *SCRIPTS])
def test_every_script_is_posix_shell(name: str, tmp_path: Path) -> None:
    """Both shells at hand understand it."""
    file = tmp_path / name
    file.write_bytes(script(name))
    for shell in (("busybox", "ash"), ("dash",)):
        if shutil.which(shell[0]):
            assert subprocess.run([*shell, "-n", str(file)], check=False).returncode == 0


@pytest.mark.parametrize("brought", [False, True])
def test_a_host_key_is_made_only_where_the_hosts_own_files_bring_none(deployer: Deployer, brought: bool) -> None:
    """One that was in the image goes in either case: two hosts would have it."""
    target, calls = deployer.folder / "target", deployer.folder / "calls"
    keys = target / "etc/ssh"
    for folder in (keys, target / "dev", target / "var/lib/systemd"):
        folder.mkdir(parents=True)
    (keys / "ssh_host_ed25519_key").write_text("of the image")
    (keys / "ssh_host_rsa_key").write_text("of the image")
    lay = f"echo of the host > {keys}/ssh_host_ed25519_key" if brought else "true"
    stubs = (
        f'TARGET={target}; hostname=node001; ask() {{ : > "$ANSWER"; }}; mount() {{ true; }}; umount() {{ true; }}; '
        f"chroot() {{ echo $* >> {calls}; case $* in *extract*) {lay} ;; esac; }}"
    )
    with as_file(files(clusterctl.edges.os_images) / "deployer/system.sh") as script:
        done = deployer.run(f". {script}; {stubs}; lay_overlay; give_identity")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("ssh-keygen" in calls.read_text()) is not brought
    assert not (keys / "ssh_host_rsa_key").exists()
    assert [path.read_text() for path in keys.iterdir()] == (["of the host\n"] if brought else [])


def test_shellcheck_finds_nothing() -> None:
    """All scripts, as they include each other."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    with as_file(files(clusterctl.edges.os_images) / "deployer") as folder:
        for argv in (["deploy.sh"], ["probe.sh"], ["--exclude=SC2154", "udhcpc.sh"], ["init"]):
            checked = ["shellcheck", "--shell=dash", "--external-sources", f"--source-path={folder}", *argv[:-1]]
            result = subprocess.run([*checked, str(folder / argv[-1])], capture_output=True, text=True, check=False)
            assert result.returncode == 0, result.stdout


def drives(deployer: Deployer, *sizes: int) -> list[Path]:
    """Files full of data that stand for drives, and the machine's report of them."""
    folder = deployer.folder / "dev"
    folder.mkdir()
    found = [folder / f"sd{letter}" for letter, _ in zip("abc", sizes, strict=False)]
    for file, size in zip(found, sizes, strict=True):
        file.write_bytes(b"data" * (size // 4))
    lines = [f"disk={file}\tSER{file.name}\tw\t{size}\tmodel\tf\n" for file, size in zip(found, sizes, strict=True)]
    deployer.body("report", "serial=S\n" + "".join(lines))
    return found


def answered(deployer: Deployer, *paths: Path) -> None:
    deployer.body("install", "time=1\n" + "".join(f"erase={path}\n" for path in paths))


def erase(deployer: Deployer, *answers: str) -> subprocess.CompletedProcess[str]:
    return deployer.run(f"DRIVES={deployer.folder}/dev; erase_drives", *answers)


def test_every_drive_is_overwritten_and_read_back(deployer: Deployer) -> None:
    """Whole blocks and the rest behind them; the result of each is posted, with what it does not reach."""
    disks = drives(deployer, 4194304 + 1024 * 1024 + 512, 512 * 1024)
    answered(deployer, *disks)
    done = erase(deployer, *["200"] * 9)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [disk.read_bytes().strip(b"\0") for disk in disks] == [b"", b""]
    assert [disk.stat().st_size for disk in disks] == [4194304 + 1024 * 1024 + 512, 512 * 1024]
    assert "serial SERsda (model, 5243392 bytes): erased by one pass of zeros, read back in 16 places" in done.stdout


@pytest.mark.parametrize("named", [("sda",), ("sda", "sdb", "sdc"), ("sda", "sda"), ("sda", "../dev/sdb")])
def test_an_answer_with_other_drives_erases_nothing(deployer: Deployer, named: tuple[str, ...]) -> None:
    """Fewer, more, one twice, or a path: the answer is not for this machine's report."""
    disks = drives(deployer, 4096, 4096)
    answered(deployer, *(deployer.folder / "dev" / name for name in named))
    done = erase(deployer, *["200"] * 9)
    assert (done.returncode, "does not name exactly the drives" in done.stdout) == (1, True)
    assert all(disk.read_bytes() == b"data" * 1024 for disk in disks)


def test_a_drive_that_does_not_read_back_as_zeros_is_a_failure(deployer: Deployer) -> None:
    """The others are erased, and the machine reports which one is not."""
    disks = drives(deployer, 4096, 4096)
    disks[1].unlink()
    disks[1].symlink_to("/dev/full")
    answered(deployer, *disks)
    done = erase(deployer, *["200"] * 9)
    assert done.returncode == 1
    assert f"{disks[1]} serial SERsdb (model, 4096 bytes): NOT erased: a write failed" in done.stdout
    assert f"FAILED: not erased: {disks[1]}" in done.stdout
    assert disks[0].read_bytes() == bytes(4096)


def test_an_answer_for_an_install_orders_no_erase(deployer: Deployer) -> None:
    """Only a line of its own does."""
    deployer.body("install", "root=/dev/sda\nhostname=erase\n")
    assert deployer.run("erase_ordered").returncode == 1
