"""What Django loads at start: the app with its system checks, and the admin site that is part of the product."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Tierscope"
    default = True

    def ready(self) -> None:
        from dashboard import celery, checks  # noqa: F401  (tasks get their broker, checks are registered)


class TierscopeAdminConfig(admin_apps.SimpleAdminConfig):
    """Its pages are imported with the addresses (dashboard/urls.py): workers, which have none, start without them."""

    default = False
    default_site = "dashboard.admin_site.TierscopeAdminSite"
