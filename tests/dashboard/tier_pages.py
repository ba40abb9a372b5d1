"""The admin's tier pages as a browser sees them: forms that are opened and saved, and what the panel says live."""

from django.test import Client
from django.urls import reverse

from dashboard.models import TierSetting
from dashboard.services import tiers
from tests.dashboard.live_engine import GIB

LIST = "/admin/dashboard/tiersetting/"


def cpu_setting() -> TierSetting:
    """Of an engine that has three tiers of a GiB."""
    tiers.ensure_settings("local", {"gpu": GIB, "cpu": GIB, "disk": GIB})
    return TierSetting.objects.get(cache_tier="cpu")


def change_url(setting: TierSetting) -> str:
    return reverse("admin:dashboard_tiersetting_change", args=[setting.pk])


def clear_url(setting: TierSetting) -> str:
    return reverse("admin:dashboard_tiersetting_clear", args=[setting.pk])


def open_form(client: Client, setting: TierSetting) -> dict[str, str]:
    """What a browser would post if nothing was touched."""
    form = client.get(change_url(setting)).context["adminform"].form
    return {name: form[name].value() for name in form.fields if form[name].value() is not None}


def save(client: Client, setting: TierSetting, **typed: str) -> str:
    """The text of the page that comes after saving."""
    response = client.post(change_url(setting), {**open_form(client, setting), **typed}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def live(client: Client, tier: str) -> dict[str, object]:
    panel = client.get(f"{LIST}live/").json()
    return next(row for engine in panel["engines"] for row in engine["tiers"] if row["cache_tier"] == tier)
