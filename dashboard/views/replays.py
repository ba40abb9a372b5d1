"""The page of replays, for staff: the form for a new one. Its list is filled in by its script (replays_data.py)."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard.admin.request_user import user_of
from dashboard.forms_replays import ReplayForm
from dashboard.services.replays import create
from dashboard.trace_folder import MAX_FILE_BYTES

_MODULES = [
    *(f"js/lib/{name}.js" for name in ("api", "dom", "plotly", "time")),
    *(f"js/overview/{name}.js" for name in ("live",)),
    *(f"js/replays/{name}.js" for name in ("compare", "rows", "side_by_side", "upload")),
    "js/what-if/figures.js",
]


def replays(request: HttpRequest) -> HttpResponse:
    """A POST begins one, and says what is wrong with it otherwise."""
    if not user_of(request).is_staff:
        raise PermissionDenied
    form = ReplayForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and form.wanted is not None:
        try:
            replay = create(form.wanted, author=user_of(request), now=timezone.now())
        except ValidationError as error:
            form.add_error(None, ValidationError(error.messages))
        else:
            messages.success(request, f"{replay.name} waits for the worker, which begins within seconds.")
            return redirect("replays")
    status = 400 if form.errors else 200
    context = {"form": form, "modules": _MODULES, "max_file_bytes": MAX_FILE_BYTES, "default_range": "15m"}
    return render(request, "replays.html", context, status=status)
