#!/usr/bin/env bash
# Runs the tests (all but the soak ones) as root, and removes the labs that they left, also when they fail.
# Arguments go to pytest.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

# Names of labs that have left anything on this machine, alive or killed.
labs() {
    local root
    for root in /run/clusterctl-lab /var/lib/clusterctl-lab; do
        [ ! -d "$root" ] || find "$root" -mindepth 1 -maxdepth 1 -type d -printf '%f\n'
    done | sort -u
}

before=$(labs)

remove_new_labs() {
    local status=$? name
    for name in $(comm -13 <(echo "$before") <(labs)); do
        say "removing lab $name, which the tests left"
        as_root "$venv/bin/clusterctl" lab down --name "$name" || status=1
    done
    exit "$status"
}
trap remove_new_labs EXIT

as_root "$venv/bin/python" -m pytest -m "not soak" "$@"
