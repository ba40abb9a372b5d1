"""Who may use /v1, asked directly: what is remembered of a key, and for how long."""

import asyncio

import pytest
from django.core.cache import cache
from django.test import AsyncRequestFactory

from dashboard.api import auth
from dashboard.api.errors import ApiError
from dashboard.models import ApiKey
from dashboard.services.api_keys import create_api_key

pytestmark = pytest.mark.django_db(transaction=True)


async def ask(key: str) -> auth.Caller:
    return await auth.authenticate(AsyncRequestFactory().get("/v1/models", headers={"Authorization": f"Bearer {key}"}))


def test_a_revoked_key_is_refused_once_what_was_remembered_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REMEMBERED_SECONDS", 0.05)
    row, key = create_api_key("ci", "acme")

    async def revoke() -> None:
        assert await ask(key) == auth.Caller(row.pk, "acme")
        await ApiKey.objects.aupdate(is_active=False)
        await asyncio.sleep(0.1)
        with pytest.raises(ApiError, match="unknown or was revoked"):
            await ask(key)

    asyncio.run(revoke())


def test_a_key_that_was_refused_is_not_remembered_as_refused() -> None:
    row, key = create_api_key("ci")
    ApiKey.objects.update(is_active=False)

    async def allow_again() -> None:
        with pytest.raises(ApiError, match="unknown or was revoked"):
            await ask(key)
        await ApiKey.objects.aupdate(is_active=True)
        assert (await ask(key)).api_key_id == row.pk

    asyncio.run(allow_again())


def test_no_key_is_kept_in_the_cache_as_it_is() -> None:
    _, key = create_api_key("ci")
    asyncio.run(ask(key))
    assert not any(key in str(each) for each in cache._cache)  # type: ignore[attr-defined]
