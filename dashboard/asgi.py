"""The web process: pages, JSON, SSE, /v1 and /metrics. Never imports torch (tests/test_architecture.py)."""

import os
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
_django = get_asgi_application()

from django.conf import settings  # noqa: E402  (Django has to be set up before)

from dashboard.body_limit import BodyLimit  # noqa: E402

application = BodyLimit(cast(Any, _django), settings.MAX_BODY_BYTES)
