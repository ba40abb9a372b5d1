#!/bin/sh
# `make run`: installs what is missing, then becomes the launcher, which is the one process that Ctrl-C ends.
cd "$(dirname "$0")/.." && exec scripts/install.sh run .venv/bin/python -m scripts.run
