#!/usr/bin/env bash
# The web page of the rehearsal: `start` begins to serve it and prints its address, `stop` ends that.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

readonly pid_file=$rehearsal/state/web.pid
readonly log_file=$rehearsal/state/web.log # its address opens the page as an administrator: root's alone
readonly wait_s=60

# Print the id of the process that serves the page; nothing where none does.
serving() {
    local pid
    pid=$(as_root cat "$pid_file" 2>/dev/null) || return 0
    as_root grep -qza "clusterctl" "/proc/$pid/cmdline" 2>/dev/null || return 0
    echo "$pid"
}

start() {
    local address=
    # shellcheck disable=SC2016
    as_root setsid --fork bash -c 'umask 077; echo $$ >"$1"; exec "$2" web --site "$3" --listen 127.0.0.1:0 >"$4" 2>&1 </dev/null' \
        - "$pid_file" "$venv/bin/clusterctl" "$rehearsal" "$log_file"
    for _ in $(seq $((wait_s * 5))); do
        address=$(as_root grep -o 'http://[^ ]*' "$log_file" 2>/dev/null) && break
        sleep 0.2
    done
    if [ -z "$address" ]; then
        log "the web page did not start: sudo cat $log_file shows why"
        return
    fi
    log "see it in a browser of this machine: $address"
}

stop() {
    local pid
    pid=$(serving)
    [ -z "$pid" ] || as_root kill "$pid" 2>/dev/null || true
    as_root rm -f "$pid_file" "$log_file"
}

"$1"
