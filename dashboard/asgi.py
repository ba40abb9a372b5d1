"""The web process: pages, JSON, SSE, /v1 and /metrics. Never imports torch (tests/test_architecture.py)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
application = get_asgi_application()
