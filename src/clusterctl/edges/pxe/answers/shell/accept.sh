# Reports the machine to the service. The answer names the root disk, $root; from then on the clock is right, too.
# A machine that is refused writes nothing and is switched off. `stop WHY` is the installer's own way to fail.
accept() {
    get probe.sh || stop "cannot fetch the probe"
    cp "$WORK/answer" "$WORK/probe.sh"
    sh "$WORK/probe.sh" > "$WORK/report" || stop "the probe failed"
    post report "$WORK/report" || refused
    root=$(sed -n 's/^root=//p' "$WORK/answer")
    now=$(sed -n 's/^time=//p' "$WORK/answer")
    grep -q -e "^disk=$root$TAB" "$WORK/report" || stop "the service named a root disk that is not there: $root"
    case $now in
        '' | *[!0-9]*) stop "the service sent no time: $now" ;;
    esac
    "$SET_CLOCK" "$now" || send progress "cannot set the clock"
}

refused() {
    [ "$?" -eq 1 ] || stop "the service does not answer"
    why="refused: $(head -n 1 "$WORK/answer")"
    send failed "$why"
    echo "clusterctl: $why" >&2
    "$POWER_OFF"
    exit 1
}

# The host's own keys are made here, so that no two hosts have the same; the service gets the public one.
# Given: IN_TARGET, what runs a command in the new system, which is at $TARGET.
post_host_key() {
    rm -f "$TARGET"/etc/ssh/ssh_host_*
    $IN_TARGET ssh-keygen -A || stop "cannot make SSH host keys"
    post host-key "$TARGET/etc/ssh/ssh_host_ed25519_key.pub" || stop "the service did not take the SSH host key"
}

# The attempt ends with `done`: where its answer was lost, the next try finds no attempt any more.
post_done() {
    sync
    printf 'installed\n' > "$WORK/done"
    post "done" "$WORK/done" && return
    [ "$status$unsure" = 404yes ] || stop "the service did not take the message that the install is done"
}

# put MODE PATH: a file of the new system, from standard input.
put() {
    mkdir -p "$TARGET${2%/*}"
    rm -f "$TARGET$2"
    (umask 077 && cat > "$TARGET$2") || stop "cannot write $2"
    chmod "$1" "$TARGET$2"
}
