#!/usr/bin/env bash
# Makes a bare Debian 12 or Ubuntu 24.04 machine a controller: Debian packages, then .venv with pinned requirements.
# Prints what it will change before it does; changes nothing when all is there.
# `setup.sh --run-only` leaves out what only the developers of clusterctl need: linters, test tools, the documentation's.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

readonly wanted_python='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
# Packages and the services of theirs that this machine shall not run because of us.
readonly unwanted_services=("opensm opensm.service" "openssh-server ssh.service" "openssh-server ssh.socket"
    "postgresql postgresql.service")
readonly start_policy=/usr/sbin/policy-rc.d  # while it is there and exits 101, installing a package starts no service
readonly ours='# written by the set-up of clusterctl, which removes it when it is done'

if [ "${1:-}" = --run-only ]; then
    readonly run_only=yes suffix=-run pins="requirements.txt"
else
    readonly run_only=no suffix="" pins="requirements.txt and requirements-dev.txt"
fi

installed() { [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c "$wanted_python" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

missing_packages() {
    local package
    while read -r package _; do
        installed "$package" || echo "$package"
    done < <(grep -v '^#' scripts/debian-packages)
    if [ -z "$(find_python)" ]; then
        echo python3
        echo python3-venv
    fi
}

# Debian starts and enables the services that it installs. On a machine with InfiniBand a second subnet manager would
# take part in the real fabric: so nothing is started, and what was not there before is not enabled either.
install_packages() (
    if [ ! -e "$start_policy" ] || grep -q "$ours" "$start_policy"; then
        trap 'as_root rm -f "$start_policy"' EXIT
        printf '#!/bin/sh\n%s\nexit 101\n' "$ours" | as_root tee "$start_policy" >/dev/null
        as_root chmod 755 "$start_policy"
    fi
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
    [ -d /run/systemd/system ] || return 0
    for pair in "${unwanted_services[@]}"; do
        read -r package service <<<"$pair"
        case " $* " in
            *" $package "*) as_root systemctl disable --quiet "$service" 2>/dev/null || log "no $service to disable" ;;
        esac
    done
)

stamp() { sha256sum requirements.txt requirements-dev.txt pyproject.toml lab/pyproject.toml; }

# The interpreter is asked too: after an upgrade of the distribution it may be gone. A set-up for developers has all.
up_to_date() {
    local stamps=("$venv/.stamp") file
    [ "$run_only" = no ] || stamps+=("$venv/.stamp-run")
    for file in "${stamps[@]}"; do
        if [ -f "$file" ] && [ "$(stamp)" = "$(cat "$file")" ]; then
            "$venv/bin/python" -c 'import clusterctl, clusterctl_cli, clusterctl_burnin, clusterctl_lab' && return
        fi
    done
    return 1
}

# The pins, with their digests, of what builds the two editable packages.
build_pins() { awk '/^[a-z]/ {wanted = /^(editables|hatchling|pathspec|pluggy|trove-classifiers)==/} wanted' requirements-dev.txt; }

# The files of pins are complete, so pip resolves nothing. Byte code is written afterwards, on all processors.
make_venv() {
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$1" -m venv --clear "$venv"
    local install=("$venv/bin/python" -m pip --disable-pip-version-check --no-input install --quiet --no-deps --no-compile)
    if [ "$run_only" = yes ]; then
        "${install[@]}" --require-hashes -r requirements.txt -r <(build_pins)
    else
        "${install[@]}" --require-hashes -r requirements.txt -r requirements-dev.txt
    fi
    "${install[@]}" --no-build-isolation --editable . --editable lab
    "$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null || true  # some packages carry templates that are no Python
    stamp >"$venv/.stamp$suffix"
}

command -v dpkg-query >/dev/null || fail "set-up knows Debian and Ubuntu only; elsewhere install by hand:
$(grep -v '^#' scripts/debian-packages)"

mapfile -t missing < <(missing_packages)

if [ "${#missing[@]}" -eq 0 ] && up_to_date; then
    log "set-up: nothing to do"
    exit 0
fi
log "set-up changes on this machine:"
if [ "${#missing[@]}" -gt 0 ]; then
    log "  Debian packages, by apt-get, none of their services started: ${missing[*]}"
fi
log "  $PWD/$venv: Python packages as pinned in $pins; the command clusterctl"

if [ "${#missing[@]}" -gt 0 ]; then
    install_packages "${missing[@]}"
fi
python=$(find_python)
[ -n "$python" ] || fail "Python 3.11 or newer with venv is needed; $(python3 --version) is too old"
make_venv "$python"
log "set-up: done; $venv/bin/clusterctl --help"
