"""Every address of the web process, part by part."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("login/", auth.LoginView.as_view(template_name="login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
]
