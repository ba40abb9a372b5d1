"""The pages' addresses and those of their JSON."""

from django.urls import path

from dashboard.views import (
    advice_data,
    alerts,
    chart_data,
    chart_files,
    events,
    fleet_data,
    pages,
    replays,
    replays_data,
    request_log,
    tiers_data,
    traffic,
    what_if_data,
)

urlpatterns = [
    path("", pages.overview, name="overview"),
    path("fleet/", pages.fleet_page, name="fleet"),
    path("tiers/", pages.tiers, name="tiers"),
    path("what-if/", pages.what_if, name="what-if"),
    path("chat/", pages.chat, name="chat"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("requests/", request_log.requests, name="requests"),
    path("replays/", replays.replays, name="replays"),
    path("favicon.ico", pages.favicon),
    path("events", events.events, name="events"),
    path("api/charts/<str:name>.json", chart_data.chart_json, name="chart-json"),
    path("api/charts/<str:name>.<str:kind>", chart_files.chart_file, name="chart-file"),
    path("api/tiles.json", chart_data.tiles_json, name="tiles-json"),
    path("api/tenants.json", chart_data.tenants_json, name="tenants-json"),
    path("api/fleet.json", fleet_data.fleet_json, name="fleet-json"),
    path("api/tiers.json", tiers_data.tiers_json, name="tiers-json"),
    path("api/what-if.json", what_if_data.what_if_json, name="what-if-json"),
    path("api/advice.json", advice_data.advice_json, name="advice-json"),
    path("api/policies/", advice_data.policies_start, name="policies-start"),
    path("api/replays.json", replays_data.replays_json, name="replays-json"),
    path("api/replays/compared.json", replays_data.compared_json, name="replays-compared-json"),
    path("api/replays/<int:replay_id>/<str:action>/", replays_data.replay_action, name="replay-action"),
    path("api/traces/<str:name>/", replays_data.trace_upload, name="trace-upload"),
    path("api/traces/<str:name>/remove/", replays_data.trace_remove, name="trace-remove"),
    path("api/sample-traffic/", traffic.send_sample_traffic, name="sample-traffic"),
]
