"""The button that sends the sample traffic again."""

from typing import Any

from django.http import HttpRequest

from dashboard import sample_traffic
from dashboard.views.answers import json_view
from dashboard.views.now import sample_traffic_now
from dashboard.views.params import BadParameterError


@json_view("POST")
def send_sample_traffic(request: HttpRequest) -> dict[str, Any]:
    """Starts it unless it runs; answers how far it is."""
    try:
        sample_traffic.start()
    except ValueError as error:
        raise BadParameterError(str(error)) from None
    return {"sample_traffic": sample_traffic_now()}
