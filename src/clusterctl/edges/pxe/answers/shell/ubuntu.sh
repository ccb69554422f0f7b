# What subiquity runs: `accept` before anything is probed, `finish` with the new system at /target, `failed` after an error
# of its own or of these commands.
: "${AUTOINSTALL:=/autoinstall.yaml}" "${LOGS:=/var/log/installer}" "${TARGET:=/target}"
: "${IN_TARGET:=curtin in-target --target=$TARGET --}"
LIMIT=8388608

stop() {
    echo "$1" > "$WORK/why"
    echo "clusterctl: $1" >&2
    exit 1
}

# subiquity reads /autoinstall.yaml once more after the early commands.
name_root_disk() {
    sed -i -e "s|^\( *path: \)$UNRESOLVED *\$|\1$root|" "$AUTOINSTALL"
    grep -q -e "^ *path: $root\$" "$AUTOINSTALL" || stop "cannot write the root disk into $AUTOINSTALL"
}

# The end of each log, where all of them are more than the service takes.
pack_logs() {
    tar -czf "$WORK/log" -C "${LOGS%/*}" "${LOGS##*/}" 2> /dev/null
    [ "$(wc -c < "$WORK/log")" -gt "$LIMIT" ] || return 0
    for log in "$LOGS"/*; do
        [ ! -f "$log" ] || { echo "== $log" && tail -c 500000 "$log"; }
    done | tail -c "$LIMIT" > "$WORK/log"
}

why() {
    if [ -s "$WORK/why" ]; then
        cat "$WORK/why"
    else
        last=$(grep -h -e ERROR "$LOGS/subiquity-server-debug.log" 2> /dev/null | tail -n 1 | cut -c 1-300)
        echo "subiquity stopped: ${last:-its log has no reason}"
    fi
}

case $1 in
    accept)
        accept
        name_root_disk
        ;;
    finish)
        lay_files
        post_host_key
        post_done
        ;;
    failed)
        pack_logs
        post log "$WORK/log"
        send failed "$(why)"
        "$POWER_OFF"
        ;;
esac
