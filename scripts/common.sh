# Shared by the scripts of this folder; sourced, not run. Works from the repository's root.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=.venv
readonly environment_broken=3
readonly rehearsal=rehearsal

log() { printf '%s\n' "$*" >&2; }

fail() {
    log "$1"
    exit "$environment_broken"
}

# Run a command as root: as we are, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo --preserve-env=PYTHONDONTWRITEBYTECODE,SOAK_KILLS,CLUSTERCTL_HYPOTHESIS,CLUSTERCTL_WRITE_PAGES "$@"
    else
        fail "this needs root: run it as root, or install sudo"
    fi
}

# What root writes into the checkout would stand in the way of its owner.
if [ "$(id -u)" -ne 0 ]; then
    export PYTHONDONTWRITEBYTECODE=1
fi
