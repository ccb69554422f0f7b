#!/usr/bin/env bash
# Removes the rehearsal: its lab, alive or killed, its journal and pool, and of its site directory all files that were not
# changed. The lab of another checkout is left alone, and named.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

[ -x "$venv/bin/clusterctl" ] || exit 0  # nothing was set up, so nothing was rehearsed
scripts/rehearse-page.sh stop
as_root "$venv/bin/clusterctl" lab down --site "$rehearsal"
as_root rm -rf "$rehearsal/state" "$rehearsal/gold.json"
if [ -d "$rehearsal" ] && ! as_root rmdir "$rehearsal" 2>/dev/null; then
    log "kept in $rehearsal/, because you changed or added it: $(find "$rehearsal" -mindepth 1 -maxdepth 1 -printf '%f ')"
fi
