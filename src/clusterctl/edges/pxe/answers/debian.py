"""Debian 12's preseed for debian-installer's netboot image. docs/reference/pxe-answers.md explains each answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from clusterctl.edges.pxe.answers.job import AnswerJob
from clusterctl.edges.pxe.answers.shells import function, put, shell

Answer = tuple[str, str, str]
"""Question, type, value."""

WORK = "/tmp/clusterctl"  # noqa: S108 - debian-installer's own RAM disk, which no other process uses
PROGRAM = f"{WORK}/install.sh"
CARRIED = "#| "
"""Begins the lines of the preseed file that hold the shell program: to debconf they are comments."""
RECIPE = (
    "clusterctl :: "
    "512 512 512 free $iflabel{ gpt } $reusemethod{ } method{ efi } format{ } . "
    "4096 8192 -1 ext4 method{ format } format{ } use_filesystem{ } filesystem{ ext4 } mountpoint{ / } ."
)
ALWAYS = ("openssh-server", "python3", "sudo", "systemd-timesyncd")
KEYS_ONLY = "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
LOOPBACK_ONLY = "auto lo\niface lo inet loopback\n"


def kernel_arguments(job: AnswerJob) -> str:
    """Return the arguments of the kernel on iPXE's line, `{mac}` for the booting card. They hold the answers that are
    needed before the preseed file is there.
    """
    return (
        f"auto=true priority=critical url={job.attempt}/preseed.cfg interface={{mac}} "
        f"hostname={job.name} domain= DEBIAN_FRONTEND=text console=tty0 console={job.console}"
    )


def preseed(job: AnswerJob) -> str:
    """Return the whole file: debconf's answers, then the shell program as comments. The first command extracts it."""
    answers = "".join(f"d-i {question} {kind} {value}".rstrip() + "\n" for question, kind, value in _answers(job))
    carried = "".join(f"{CARRIED}{line}".rstrip() + "\n" for line in program(job).splitlines())
    return f"{answers}\n{carried}"


def program(job: AnswerJob) -> str:
    """Return the shell program that the commands run."""
    settings = {"T": job.attempt, "WORK": WORK, "NOW": str(job.epoch)}
    return shell(settings, [_lay_files(job)], "talk", "accept", "debian")


def _answers(job: AnswerJob) -> Iterator[Answer]:
    yield from _commands(job)
    yield from _manners(job)
    yield from _packages(job)
    yield from _users(job)
    yield from _disk()
    yield from _boot()


def _commands(job: AnswerJob) -> Iterable[Answer]:
    take_out = f"sed -n 's/^#| \\{{0,1\\}}//p' {WORK}/preseed.cfg > {PROGRAM}"
    fetch = f"until http_proxy= wget -q -O {WORK}/preseed.cfg {job.attempt}/preseed.cfg; do sleep 2; done"
    return (
        ("preseed/early_command", "string", f"mkdir -p {WORK}; {fetch}; {take_out}; sh {PROGRAM} begin"),
        ("partman/early_command", "string", f"sh {PROGRAM} accept"),
        ("preseed/late_command", "string", f"sh {PROGRAM} finish"),
    )


def _manners(job: AnswerJob) -> Iterable[Answer]:
    """Return language, network, clock. The service sets the clock before any package is trusted."""
    return (
        ("debian-installer/locale", "string", "en_US.UTF-8"),
        ("keyboard-configuration/xkb-keymap", "select", "us"),
        ("netcfg/choose_interface", "select", job.boot_mac),
        ("netcfg/get_hostname", "string", job.name),
        ("netcfg/get_domain", "string", ""),
        ("hw-detect/load_firmware", "boolean", "false"),
        ("clock-setup/utc", "boolean", "true"),
        ("clock-setup/ntp", "boolean", "false"),
        ("time/zone", "string", "Etc/UTC"),
    )


def _packages(job: AnswerJob) -> Iterable[Answer]:
    """Return the package sources: the site's mirror through its cache, then without security's own host."""
    mirror = urlsplit(job.mirror or "http://deb.debian.org/debian")
    kind = mirror.scheme
    services = "updates" if job.mirror else "security, updates"
    return (
        ("mirror/country", "string", "manual"),
        ("mirror/protocol", "select", kind),
        (f"mirror/{kind}/hostname", "string", mirror.netloc),
        (f"mirror/{kind}/directory", "string", mirror.path.rstrip("/") or "/"),
        (f"mirror/{kind}/proxy", "string", job.proxy),
        ("apt-setup/services-select", "multiselect", services),
        ("apt-setup/cdrom/set-first", "boolean", "false"),
        ("pkgsel/run_tasksel", "boolean", "false"),
        ("pkgsel/include", "string", " ".join(dict.fromkeys([*ALWAYS, *job.packages]))),
        ("pkgsel/upgrade", "select", "none"),
        ("pkgsel/update-policy", "select", "none"),
        ("popularity-contest/participate", "boolean", "false"),
    )


def _users(job: AnswerJob) -> Iterable[Answer]:
    """Return the answers about users. `!` is a password that nothing fits."""
    if job.user == "root":
        return (
            ("passwd/root-login", "boolean", "true"),
            ("passwd/root-password-crypted", "password", "!"),
            ("passwd/make-user", "boolean", "false"),
        )
    return (
        ("passwd/root-login", "boolean", "false"),
        ("passwd/make-user", "boolean", "true"),
        ("passwd/user-fullname", "string", job.user),
        ("passwd/username", "string", job.user),
        ("passwd/user-password-crypted", "password", "!"),
    )


def _disk() -> Iterable[Answer]:
    """Leave the drive open: the service names it to `partman/early_command`. Without it partman writes nothing."""
    return (
        ("partman-auto/method", "string", "regular"),
        ("partman-auto/expert_recipe", "string", RECIPE),
        ("partman-auto/choose_recipe", "select", "clusterctl"),
        ("partman-partitioning/default_label", "string", "gpt"),
        ("partman-partitioning/confirm_write_new_label", "boolean", "true"),
        ("partman-basicfilesystems/no_swap", "boolean", "false"),
        ("partman-efi/non_efi_system", "boolean", "true"),
        ("partman/choose_partition", "select", "finish"),
        ("partman/confirm", "boolean", "true"),
        ("partman/confirm_nooverwrite", "boolean", "true"),
        ("partman/mount_style", "select", "uuid"),
    )


def _boot() -> Iterable[Answer]:
    return (
        ("grub-installer/only_debian", "boolean", "true"),
        ("grub-installer/with_other_os", "boolean", "true"),
        ("grub-installer/force-efi-extra-removable", "boolean", "true"),
        ("cdrom-detect/eject", "boolean", "false"),
        ("finish-install/reboot_in_progress", "note", ""),
    )


def _lay_files(job: AnswerJob) -> str:
    """Return the lines for logins, and for the host's network by networkd in place of the installer's ifupdown."""
    lines = [put("/etc/ssh/sshd_config.d/90-clusterctl.conf", KEYS_ONLY), *_login(job)]
    if job.time_servers:
        servers = f"[Time]\nNTP={' '.join(job.time_servers)}\n"
        lines.append(put("/etc/systemd/timesyncd.conf.d/90-clusterctl.conf", servers))
    lines += [put(*file) for file in job.files.items()]
    if any(path.startswith("/etc/systemd/network/") for path in job.files):
        lines += [put("/etc/network/interfaces", LOOPBACK_ONLY), "$IN_TARGET systemctl enable systemd-networkd"]
    return function("lay_files", *lines)


def _login(job: AnswerJob) -> Iterator[str]:
    home = "/root" if job.user == "root" else f"/home/{job.user}"
    yield put(f"{home}/.ssh/authorized_keys", f"{job.authorized_key}\n", "0600")
    yield f'chmod 0700 "$TARGET{home}/.ssh"'
    if job.user != "root":
        yield f"$IN_TARGET chown -R {job.user}: {home}/.ssh"
        yield put("/etc/sudoers.d/90-clusterctl", f"{job.user} ALL=(ALL) NOPASSWD:ALL\n", "0440")
