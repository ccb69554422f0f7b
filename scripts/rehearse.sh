#!/usr/bin/env bash
# A rehearsal: eight machines, three of them broken, from BMC addresses to gold or quarantine. Leaves the lab up.
# Sets the machine up before, where needed, and prints at the end where the time went.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

readonly machines=8
readonly faults=(missing-gpu:node003 never-boots:node005 swapped-cable:node007)

clusterctl() { as_root "$venv/bin/clusterctl" "$@"; }

# Exit code 1 means that nodes are held or failed: the verdict below judges which.
some_may_fail() {
    local status=0
    "$@" || status=$?
    [ "$status" -le 1 ] || exit "$status"
}

spent=()
began=$SECONDS
# Note how long the part of the rehearsal that has just ended took.
ended() {
    spent+=("$1 $((SECONDS - began)) s")
    began=$SECONDS
}

scripts/setup.sh --run-only
ended "set-up"
scripts/rehearse-down.sh
clusterctl lab up --hosts "$machines" --site "$rehearsal" "${faults[@]/#/--fault=}"
ended "start of the lab"
some_may_fail clusterctl bootstrap --site "$rehearsal" --yes
ended "bootstrap"
log ""
some_may_fail clusterctl nodes --site "$rehearsal"

broken=()
for fault in "${faults[@]}"; do
    broken+=("${fault#*:}")
    log ""
    some_may_fail clusterctl why "${fault#*:}" --site "$rehearsal"
done

ended "reports"
printf -v parts ', %s' "${spent[@]}"
log ""
log "time: $((SECONDS / 60)) min $((SECONDS % 60)) s: ${parts#, }"
some_may_fail clusterctl nodes --site "$rehearsal" --json |
    "$venv/bin/python" scripts/rehearse_verdict.py --machines "$machines" --broken "${broken[@]}"
scripts/rehearse-page.sh start
log "the lab is up to look around in: $venv/bin/clusterctl lab status; make rehearse-down removes it"
