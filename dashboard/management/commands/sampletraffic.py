"""manage.py sampletraffic: starts the sample traffic and says how far it is."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard import sample_traffic

_EVERY_SECONDS = 0.5


class Command(BaseCommand):
    help = "Send about a minute of multi-turn chats through /v1 with the default API key, as the page's button does."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            sample_traffic.start()
        except ValueError as error:
            raise CommandError(str(error)) from None
        said = ""
        while (state := sample_traffic.progress()) is not None:
            if state["message"] != said:
                said = state["message"]
                self.stdout.write(f"Sample traffic: {said}")
            if not state["is_running"]:
                break
            time.sleep(_EVERY_SECONDS)
        if not said.startswith("done"):
            raise CommandError(f"Sample traffic did not finish: {said or 'Valkey does not answer'}.")
