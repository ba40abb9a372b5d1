"""The web process: pages, JSON, SSE, /v1 and /metrics. Never imports torch (tests/test_architecture.py)."""

import os
from typing import Any, cast

import django
from django.core.handlers.asgi import ASGIHandler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402  (Django has to be set up before)
from django.core.signals import request_started  # noqa: E402  (as above)
from django.db import close_old_connections, reset_queries  # noqa: E402  (as above)

from dashboard.body_limit import BodyLimit  # noqa: E402  (as above)

# What needs no thread: the API's views are asynchronous, static files are found and read before anything else.
_WITHOUT_THREAD = ("/v1/", settings.STATIC_URL)

# When a request starts no connection is old: a page has a thread of its own, /v1 looks after those of its threads
# (dashboard/api/auth.py), and what was opened is closed with the answer. Asking would be a hop to a thread, 0.7 ms.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)


class Handler(ASGIHandler):
    """Django's, but some of it does without a thread of its own for each request: two starts of a thread are spared.

    What little of it is synchronous and tied to a thread (a session's user, closing the response) runs in the
    process's one; the key look-up and the broker have threads that stay.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_WITHOUT_THREAD):
            await self.handle(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


application = BodyLimit(cast(Any, Handler()), settings.MAX_BODY_BYTES)
