"""Who sends an admin request: a signed-in user, since every admin view asks for one first."""

from django.contrib.auth.models import User
from django.http import HttpRequest


def user_of(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
