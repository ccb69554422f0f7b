#!/usr/bin/env bash
# Runs the tests (all but the soak ones) as root, and removes the labs that they left, also when they fail.
# Arguments go to pytest. Without any, the tests with labs, which often wait, and the others, which mostly compute, run
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

# Whether tests have made the lab: its site lies in a folder of pytest's, or it has got no record yet.
is_ours() {
    local record=/var/lib/clusterctl-lab/$1/lab.json
    ! as_root test -e "$record" || as_root grep -q '"site": *"[^"]*/pytest-of-' "$record"
}

before=$(labs)

others=
said=$(mktemp)

clean_up() {
    local status=$? name
    [ -z "$others" ] || kill -- "-$others" 2>/dev/null || true
    rm -f "$said"
    for name in $(comm -13 <(echo "$before") <(labs)); do
        is_ours "$name" || continue
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

set -m # a process group of its own, which is ended as a whole
tests -m "not soak and not lab" >"$said" 2>&1 </dev/null &
others=$!
set +m
status=0
tests -m "lab and not soak" || status=$?
wait "$others" || status=$?
others=
cat "$said"
exit "$status"
