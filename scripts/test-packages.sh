#!/bin/sh
# The programs that tests need and PyPI does not have, from the distribution: Chromium, Prometheus, VictoriaMetrics.
set -u
missing=""
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || missing="$missing chromium"
command -v prometheus >/dev/null 2>&1 || missing="$missing prometheus"
command -v victoria-metrics >/dev/null 2>&1 || missing="$missing victoria-metrics"
[ -n "$missing" ] || exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
echo "Installing$missing with apt-get …" >&2
export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -qq </dev/null >/dev/null 2>&1
for package in $missing; do
    # --no-install-recommends: Prometheus would bring a node exporter and start both.
    as_root apt-get install -y -qq --no-install-recommends "$package" </dev/null >/dev/null 2>&1 \
        || echo "WARNING: could not install $package: the tests that need it are SKIPPED." >&2
done
exit 0
