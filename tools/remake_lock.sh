#!/bin/sh
# Remake requirements.lock from pyproject.toml, over every extra but `lock`. UPGRADE=1 moves every version forward;
# without it, versions that still satisfy pyproject.toml stay.
#
# The lock has to serve every platform: no addresses, no hashes, no local version (+cpu), and none of the
# packages that torch brings along on some platforms only.

set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
cd "$root"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
[ ! -f requirements.lock ] || cp requirements.lock "$new"

CUSTOM_COMPILE_COMMAND='make lock' .venv/bin/pip-compile --quiet --strip-extras \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
    --extra test --extra grading --extra cluster --extra hub --extra postgresql \
    ${UPGRADE:+--upgrade} --output-file "$new" pyproject.toml

# A package and the comment lines below it, which say what needs it, go together.
sed -E 's/^([A-Za-z0-9._-]+==[^+ ]+)\+[A-Za-z0-9.]+/\1/' "$new" |
    awk '/^(nvidia-|cuda-|triton)/ { skip = 1; next } /^[^ ]/ { skip = 0 } !skip' >requirements.lock
echo "requirements.lock is remade: $(grep -c == requirements.lock) packages."
