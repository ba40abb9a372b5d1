#!/bin/sh
# `make run`: installs what is missing, then hands over to the launcher, which is the one process that Ctrl-C ends.
set -eu
cd "$(dirname "$0")/.."
scripts/install.sh run
exec .venv/bin/python -m scripts.run
