"""What a command is given to be let into a Prometheus: by variables, since everybody on the machine sees arguments."""

import os

from django.core.management.base import CommandError

from dashboard.sources.headers import parse_headers

HELP = "Its token: PROMETHEUS_TOKEN; headers, one a line: PROMETHEUS_HEADERS."


def typed_access() -> dict[str, str]:
    """The fields `token` and `headers`, "" where there are none."""
    headers = os.environ.get("PROMETHEUS_HEADERS", "")
    try:
        parse_headers(headers)
    except ValueError as error:
        raise CommandError(f"PROMETHEUS_HEADERS: {error}") from None
    return {"token": os.environ.get("PROMETHEUS_TOKEN", ""), "headers": headers}
