"""What the system writes and nobody may edit: a wrong hand must not change what was counted."""

from typing import Any

from django.db.models import Model
from django.http import HttpRequest


class ReadOnlyMixin:
    """For a ModelAdmin: look, search and filter only."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}
