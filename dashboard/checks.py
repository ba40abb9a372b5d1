"""What Django can see is wrong before anything starts, each with an id and a hint. `manage.py check` runs them all.

A wrong value of one variable fails earlier, in settings.py, with its name; here is what only shows between variables or
on this machine.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from dashboard.sizes import format_size

# A database write, a log line and a pid file have to fit, whatever the disk tier takes.
LOW_DISK_BYTES = 256 * 2**20
OLDEST_SQLITE = (3, 35)


@register()
def check_home(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    home = Path(settings.TIERSCOPE_HOME)
    return [*_home_problems(home)]


def _home_problems(home: Path) -> Iterator[CheckMessage]:
    if home.exists() and not home.is_dir():
        yield Error(f"TIERSCOPE_HOME ({home}) is not a folder.", hint="Name a folder.", id="tierscope.E001")
        return
    if not os.access(_nearest(home), os.W_OK | os.X_OK):
        hint = "Give this user the folder (chown), or name another one in TIERSCOPE_HOME."
        yield Error(f"TIERSCOPE_HOME ({home}) cannot be written to.", hint=hint, id="tierscope.E001")


@register()
def check_disk(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    home = Path(settings.TIERSCOPE_HOME)
    free = shutil.disk_usage(_nearest(home)).free
    if free >= LOW_DISK_BYTES:
        return []
    hint = "Make room, shrink or clear the disk tier in the admin, or move TIERSCOPE_HOME to a larger disk."
    return [checks.Warning(f"Only {format_size(free)} is free on the disk of {home}.", hint=hint, id="tierscope.W001")]


@register()
def check_sqlite(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Packing takes amounts from the head with RETURNING."""
    if "sqlite" not in settings.DATABASES["default"]["ENGINE"] or sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return []
    hint = "Use a Python that brings a newer one along, or a PostgreSQL: DATABASE_URL=postgres://…"
    told = f"Python has SQLite {sqlite3.sqlite_version}; expected {'.'.join(map(str, OLDEST_SQLITE))} or newer."
    return [Error(told, hint=hint, id="tierscope.E006")]


@register()
def check_exposure(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    return [] if is_loopback(settings.BIND) else [*_exposure_problems()]


def _exposure_problems() -> Iterator[CheckMessage]:
    where = f"TIERSCOPE_BIND is {settings.BIND}, which other machines can reach"
    if settings.DEBUG:
        hint = "Debug pages show settings and source: unset TIERSCOPE_DEBUG, or bind to 127.0.0.1."
        yield Error(f"{where}, and TIERSCOPE_DEBUG is on.", hint=hint, id="tierscope.E004")
    if not settings.METRICS_TOKEN:
        hint = "Set TIERSCOPE_METRICS_TOKEN and give it to Prometheus as bearer token."
        yield Error(f"{where}, and /metrics has no token.", hint=hint, id="tierscope.E005")
    if not settings.SESSION_COOKIE_SECURE:
        hint = "Put a proxy with TLS in front and set TIERSCOPE_HTTPS=1, so that cookies never travel in the clear."
        yield checks.Warning(f"{where}, and TIERSCOPE_HTTPS is off.", hint=hint, id="tierscope.W002")


@register()
def check_hosts(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Name the hosts that people type: TIERSCOPE_ALLOWED_HOSTS=tierscope.example.com."
    return [checks.Warning("TIERSCOPE_ALLOWED_HOSTS allows every host name.", hint=hint, id="tierscope.W003")]


def is_loopback(bind: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    try:
        return ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        return bind == "localhost"


def _nearest(path: Path) -> Path:
    """`path`, or the nearest folder above it that exists: where it would be made."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
