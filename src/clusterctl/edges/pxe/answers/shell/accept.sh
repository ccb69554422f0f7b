# Tells the service what this machine is, and is told which drive is the root disk: $root, and the clock is right from then
# on. A machine that is refused writes nothing and is switched off. `stop WHY` is the installer's own way to fail.
accept() {
    get probe.sh || stop "cannot fetch the probe"
    cp "$WORK/answer" "$WORK/probe.sh"
    sh "$WORK/probe.sh" > "$WORK/report" || stop "the probe failed"
    post report "$WORK/report" || refused
    root=$(sed -n 's/^root=//p' "$WORK/answer")
    now=$(sed -n 's/^time=//p' "$WORK/answer")
    grep -q -e "^disk=$root$TAB" "$WORK/report" || stop "was told a root disk that it does not see: $root"
    case $now in
        '' | *[!0-9]*) stop "was told no time: $now" ;;
    esac
    "$SET_CLOCK" "$now" || tell progress "cannot set the clock"
}

refused() {
    [ "$?" -eq 1 ] || stop "the service does not answer"
    why="refused: $(head -n 1 "$WORK/answer")"
    tell failed "$why"
    echo "clusterctl: $why" >&2
    "$POWER_OFF"
    exit 1
}

# The host's own keys are made here, so that no two hosts have the same; the service hears of the public one.
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
    [ "$status$unsure" = 404yes ] || stop "the service did not hear that the install is done"
}

# put MODE PATH: a file of the new system, from standard input.
put() {
    mkdir -p "$TARGET${2%/*}"
    rm -f "$TARGET$2"
    (umask 077 && cat > "$TARGET$2") || stop "cannot write $2"
    chmod "$1" "$TARGET$2"
}
