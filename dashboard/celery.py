"""The Celery application. Queues: `default` (recording, roll-up, sample traffic) and `engine.<name>`, one an engine."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from dashboard.beat import BeatStep
from dashboard.engine_worker import EngineStep

app = Celery("tierscope")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["dashboard"])
app.autodiscover_tasks(["dashboard"], related_name="engine_tasks")
app.autodiscover_tasks(["dashboard"], related_name="sample_traffic")
app.steps["worker"] |= {BeatStep, EngineStep}
