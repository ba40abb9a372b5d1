"""What a command is given to be let into a Prometheus: by variables, since everybody on the machine sees arguments."""

import os
from collections.abc import Callable

from django.core.management.base import CommandError

from dashboard.sources.headers import check_token, parse_headers

HELP = "Its token: PROMETHEUS_TOKEN; headers, one a line: PROMETHEUS_HEADERS."


def typed_access() -> dict[str, str]:
    """The fields `token` and `headers`, "" where there are none."""
    return {
        "token": _checked("PROMETHEUS_TOKEN", check_token),
        "headers": _checked("PROMETHEUS_HEADERS", parse_headers),
    }


def _checked(name: str, check: Callable[[str], object]) -> str:
    """The variable's value without what a file's last line ends with. Raises CommandError with its name."""
    value = os.environ.get(name, "").strip()
    try:
        check(value)
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from None
    return value
