# Sends requests to the install service. POSIX sh, with what the installers bring: curl on Ubuntu's live server, wget in
# debian-installer.
# Given: T, the attempt's URL; WORK, a folder of our own. Silence is met by TRIES attempts, PAUSE seconds apart.
: "${TRIES:=300}" "${PAUSE:=2}" "${SET_CLOCK:=set_clock}" "${POWER_OFF:=poweroff}"
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
mkdir -p "$WORK"
TAB=$(printf '\t')

# get PATH, post PATH FILE: 0 done, 1 refused for good, 2 no answer in all that time. The answer is in $WORK/answer;
# $unsure where an earlier attempt may have arrived although its answer did not.
get() { call get_once "$1"; }
post() { call post_once "$1" "$2"; }

call() {
    tries=$TRIES
    unsure=
    while :; do
        status=$("$@")
        case $status in
            2??) return 0 ;;
            408 | 429) ;;
            4??) return 1 ;;
            *) unsure=yes ;;
        esac
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 2
        sleep "$PAUSE"
    done
}

# send PATH TEXT: posts it once, and goes on whether or not it arrived.
send() {
    printf '%s\n' "$2" > "$WORK/text"
    post_once "$1" "$WORK/text" > /dev/null
}

# Both print the status of the answer, or 000 where there was none.
get_once() { ask "$T/$1"; }
post_once() { ask "$T/$1" "$2"; }

# ask URL [FILE]: gets, or posts the file.
ask() {
    if command -v curl > /dev/null; then
        with_curl ${2:+-H 'Content-Type: text/plain' -H 'Expect:' --data-binary "@$2"} "$1"
    else
        with_wget ${2:+--header='Content-Type: text/plain' --post-file="$2"} "$1"
    fi
}

with_curl() {
    curl -s --connect-timeout 10 --max-time 300 -o "$WORK/answer" -w '%{http_code}' "$@" > "$WORK/status" ||
        echo 000 > "$WORK/status"
    cat "$WORK/status"
}

# GNU's wget, which reports the status of a failure in its message only.
with_wget() {
    if wget -T 60 -t 1 --content-on-error -O "$WORK/answer" "$@" 2> "$WORK/errors"; then
        echo 200
    else
        status=$(sed -n 's/.*ERROR \([0-9][0-9][0-9]\):.*/\1/p' "$WORK/errors")
        echo "${status:-000}"
    fi
}

set_clock() {
    date -u -s "@$1" && hwclock -u -w
}
