"""What is answered where a view failed: what whoever runs the server can do, as far as that is known.

For programs in the shape of their API's errors, for pages' own scripts in theirs.
"""

import sys

from django.http import HttpRequest, HttpResponse
from django.template import loader

from dashboard.api.errors import unexpected
from dashboard.database_words import why_not
from dashboard.views.answers import refusal

_OF_PROGRAMS = ("/v1/", "/api/v1/")
_LOGGED = "The error is in the log of the web process. Nothing that was counted is lost by it."


def failed(request: HttpRequest) -> HttpResponse:
    """The handler of 500s."""
    error = sys.exc_info()[1]
    told = why_not(error)
    if request.path_info.startswith(_OF_PROGRAMS):
        return unexpected(error).response()
    status, sentence = (503, told) if told else (500, _LOGGED)
    if request.path_info.startswith("/api/"):
        return refusal(status, sentence)
    return HttpResponse(loader.get_template("500.html").render({"sentence": sentence}), status=status)
