#!/usr/bin/env bash
# Runs the tests (all but the soak ones) as root, and removes the labs that they left, also when they fail. A second
# run on the same machine is refused.
# Arguments go to pytest. Without any, the tests without a lab run first, four files at a time; then the tests with labs,
# two files at a time: labs of different files have networks and names of their own, and mostly wait. Loads of the lab
# measure rates against limits that hold on a crowded machine (docs/soak/2026-11-28-thirty-fault-free.md).
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

# Names of labs that have left anything on this machine, alive or killed.
labs() {
    local root
    for root in /run/clusterctl-lab /var/lib/clusterctl-lab; do
        [ ! -d "$root" ] || find "$root" -mindepth 1 -maxdepth 1 -type d -printf '%f\n'
    done | sort -u
}

# Return whether this run made the lab: its site lies in the folder of this run's tests, or it has no record yet.
is_ours() {
    local record=/var/lib/clusterctl-lab/$1/lab.json
    ! as_root test -e "$record" || as_root grep -q "\"site\": *\"$state/" "$record"
}

# Tests use fixed names, addresses and folders of labs: two runs on one machine would disturb each other.
readonly lock=/run/lock/clusterctl-tests.lock
as_root touch "$lock"
exec {lock_descriptor}<"$lock"
flock --nonblock "$lock_descriptor" || fail "another run of the tests is going on: $(cat "$lock"). Wait until it has ended."
echo "in $PWD, process $$" | as_root tee "$lock" >/dev/null

before=$(labs)

state=$(mktemp -d /tmp/t.XXXXXX)  # short: the paths of sockets in it have a limit

clean_up() {
    local status=$? name
    for name in $(comm -13 <(echo "$before") <(labs)); do
        is_ours "$name" || continue
        log "removing lab $name, which the tests left"
        as_root "$venv/bin/clusterctl" lab down --name "$name" || status=1
    done
    as_root rm -rf "$state"
    exit "$status"
}
trap clean_up EXIT

# Run pytest with a folder for temporary files that has this name.
tests() {
    local name=$1
    shift
    as_root "$venv/bin/python" -m pytest --basetemp="$state/$name" "$@"
}

# Every process of a test would else compile again what it imports. Root does not write into the checkout of another user.
"$venv/bin/python" -m compileall -q -j 0 src burnin/clusterctl_burnin cli/clusterctl_cli lab/clusterctl_lab
[ "$(id -u)" -ne 0 ] || unset PYTHONDONTWRITEBYTECODE

readonly processes=4 labs_at_once=2  # most of these tests wait for servers, disks and other processes
readonly slowest=(--durations=25 --durations-min=5)

if [ $# -gt 0 ]; then
    tests pytest -m "not soak" "$@"
    exit
fi

# tests/conftest.py holds every test with the mark to a file that names it.
mapfile -t with_labs < <(grep -rl --include='test_*.py' 'pytest\.mark\.lab\b' tests lab/tests | sort)

status=0
tests without -m "not soak and not lab" "${slowest[@]}" --numprocesses "$processes" --dist loadfile --no-loadscope-reorder || status=$?
tests l -m "lab and not soak" "${slowest[@]}" --numprocesses "$labs_at_once" --dist loadfile --no-loadscope-reorder "${with_labs[@]}" ||
    status=$?
exit "$status"
