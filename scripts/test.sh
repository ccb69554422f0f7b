#!/usr/bin/env bash
# Runs the tests (all but the soak ones) as root, and removes the labs that they left, also when they fail.
# Arguments go to pytest. Without any, the tests with labs, which mostly wait, and the others, which mostly compute, run
# beside each other; what the others said comes at the end.
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

others=
said=$(mktemp)

clean_up() {
    local status=$? name
    [ -z "$others" ] || kill "$others" 2>/dev/null || true
    rm -f "$said"
    for name in $(comm -13 <(echo "$before") <(labs)); do
        say "removing lab $name, which the tests left"
        as_root "$venv/bin/clusterctl" lab down --name "$name" || status=1
    done
    exit "$status"
}
trap clean_up EXIT

tests() { as_root "$venv/bin/python" -m pytest "$@"; }

if [ $# -gt 0 ]; then
    tests -m "not soak" "$@"
    exit
fi
tests -m "not soak and not lab" >"$said" 2>&1 &
others=$!
status=0
tests -m "lab and not soak" || status=$?
wait "$others" || status=$?
others=
cat "$said"
exit "$status"
