"""What the dashboard's tests share."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any) -> None:
    """Pages name static files as they are called here: hashed names need collectstatic first."""
    backend = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": backend}}
