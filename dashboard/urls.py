"""Every address of the web process, part by part."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path, re_path

from dashboard.health import healthz
from dashboard.metrics import metrics

handler400 = "dashboard.bad_request.refused"
handler500 = "dashboard.server_error.failed"
admin.autodiscover()
urlpatterns = [
    path("admin/", admin.site.urls),
    path("login/", auth.LoginView.as_view(template_name="login.html"), name="login"),
    re_path(r"^v1(?:/|$)", include("dashboard.api.urls")),
    re_path(r"^api/v1(?:/|$)", include("dashboard.read_api.urls")),
    path("", include("dashboard.views.urls")),
    path("metrics", metrics, name="metrics"),
    path("healthz", healthz, name="healthz"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
]
