#!/bin/sh
# Install the course into .venv, or do nothing when that is already done.
#
#   tools/install.sh [lab|test|lock]
#
# lab   what a student needs (the default);  test  that, and what the checks need;
# lock  what remakes requirements.lock. Only this set is installed without the lock, which may be what is out of date.
# PYTHON=/path/to/python chooses the interpreter that a new .venv is made with.
#
# A stamp file in .venv says that an installation was finished. It is removed before anything is changed and written
# last, so whatever interrupts this script, the next run finishes the work.

set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
cd "$root" || exit 1
venv=$root/.venv
log=$venv/install.log
what=${1:-lab}

case $what in
    lab) extras='' ; constraints='-c requirements.lock' ; satisfied_by='lab test' ;;
    test) extras='[test]' ; constraints='-c requirements.lock' ; satisfied_by='test' ;;
    lock) extras='[lock]' ; constraints='' ; satisfied_by='lock' ;;
    *) echo "tools/install.sh: unknown set '$what'; choose lab, test or lock." >&2 ; exit 2 ;;
esac

stop() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

# What the installation depends on: the two files, this script, where the folder is, and the version of Python.
fingerprint() {
    "$venv/bin/python" -I -c '
import hashlib, pathlib, sys
digest = hashlib.sha256(repr((sys.argv[1], sys.version_info[:2])).encode())
for name in ("pyproject.toml", "requirements.lock", "tools/install.sh"):
    digest.update(pathlib.Path(sys.argv[1], name).read_bytes())
print(digest.hexdigest())' "$root" 2>/dev/null
}

is_finished() {
    current=$(fingerprint) && [ -n "$current" ] || return 1
    for name in $satisfied_by; do
        stamp=$venv/.course-$name
        [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$current" ] && return 0
    done
    return 1
}

# One installation at a time. The lock is outside .venv, because a broken .venv is removed.
take_turn() {
    if command -v flock >/dev/null 2>&1; then
        exec 9>"$root/.venv.lock" || stop "Cannot write in $root: the course installs into its own folder."
        flock -n 9 && return
        echo "Another installation is running in this folder; waiting for it to end."
        flock 9
        return
    fi
    turn=$root/.venv.turn
    until mkdir "$turn" 2>/dev/null; do
        [ -d "$turn" ] || stop "Cannot write in $root: the course installs into its own folder."
        owner=$(cat "$turn/owner" 2>/dev/null)
        if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
            # Its owner is gone. Renaming is atomic, so only one of several that wait takes it away.
            mv "$turn" "$turn.$$" 2>/dev/null && rm -rf "$turn.$$"
            continue
        fi
        [ -n "${told:-}" ] || echo "Another installation is running in this folder; waiting for it to end."
        told=yes
        sleep 1
    done
    echo $$ >"$turn/owner"
    trap 'rm -rf "$turn"' EXIT
    trap 'exit 130' INT TERM HUP
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Sets `python` to the first interpreter that starts and is new enough; one named by PYTHON is the only candidate.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" && python=$PYTHON && return
        version=$("$PYTHON" --version 2>&1) || stop "PYTHON=$PYTHON does not start: give the path of Python 3.11 or newer."
        stop "PYTHON=$PYTHON is $version; the course needs Python 3.11 or newer."
    fi
    found=''
    for candidate in python3 python3.13 python3.12 python3.11; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        is_new_enough "$candidate" && python=$candidate && return
        version=$("$candidate" --version 2>/dev/null) && found="$found ($candidate here is $version)"
    done
    stop "The course needs Python 3.11 or newer, and none was found$found. Install one, or run: make lab PYTHON=/path/to/python"
}

# A .venv is kept when its Python and pip start and its programs were made for this folder.
is_usable() {
    [ -d "$venv" ] && is_new_enough "$venv/bin/python" &&
        "$venv/bin/python" -I -c 'import pip' >/dev/null 2>&1 &&
        head -n 2 "$venv/bin/pip" 2>/dev/null | grep -F "$venv/bin/" >/dev/null
}

make_venv() {
    find_python
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        stop "$python has no working venv module. On Debian or Ubuntu: apt install python3-venv (with sudo if need be); then run this again."
    fi
    [ -e "$venv" ] && echo "The .venv here is broken or was made for another folder; making it again."
    rm -rf "$venv" || stop "Cannot remove $venv: close what is running from it and run this again."
    echo "Making .venv with $("$python" --version 2>&1)."
    "$python" -m venv "$venv" || stop "$python could not make $venv: the lines above say why. Then run this again."
}

# pip writes a package's INSTALLER file last but one. Where it is missing, an earlier pip was cut short: forgetting the
# package makes pip install it again instead of believing that it is there.
forget_unfinished() {
    for information in "$venv"/lib/python*/site-packages/*.dist-info; do
        [ -d "$information" ] && [ ! -f "$information/INSTALLER" ] && rm -rf "$information"
    done
    rm -rf "$venv"/lib/python*/site-packages/~*
}

is_finished && exit 0
take_turn
is_finished && exit 0

is_usable || make_venv
rm -f "$venv"/.course-*
forget_unfinished
echo "Installing the course's packages into .venv (a few minutes the first time)."
PIP_USER=no PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install \
    --log "$log" $constraints -e ".$extras" ||
    stop "pip could not finish the installation. Check the network and the disk, then run the same command again: it goes on from here. The log is .venv/install.log."

# Every kernel of this .venv then knows what to say after a restart, when nothing of the course is imported yet.
start=$root/autograder/lesson/ipython_config.py
[ ! -f "$start" ] || { mkdir -p "$venv/etc/ipython" && cp "$start" "$venv/etc/ipython/"; } ||
    stop "The packages are installed, but .venv cannot be written to; run the same command again."

fingerprint >"$venv/.course-$what.new" && mv "$venv/.course-$what.new" "$venv/.course-$what" ||
    stop "The packages are installed, but .venv cannot be written to; run the same command again."
echo "Installed."
