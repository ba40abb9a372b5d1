"""A wrong environment variable fails at start, with its name and what was expected."""

import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from environs import EnvValidationError
from redis.connection import parse_url

SETTINGS = Path(__file__).parents[2] / "dashboard" / "settings.py"


def load(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, Any]:
    """The settings as a new process with these variables would have them."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(SETTINGS))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "x"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("TIERSCOPE_ENGINE", "My Engine"),
        ("TIERSCOPE_ENGINE", "e" * 33),
        ("TIERSCOPE_DEVICE", "tpu"),
        ("TIERSCOPE_BLOCK_SIZE", "7"),
        ("TIERSCOPE_GPU_BYTES", "lots"),
        ("TIERSCOPE_CPU_BYTES", "-1"),
        ("TIERSCOPE_DISK_BYTES", "2 XiB"),
        ("TIERSCOPE_DEBUG", "maybe"),
        ("TIERSCOPE_HTTPS", "maybe"),
        ("TIERSCOPE_SAMPLE_TRAFFIC", "maybe"),
        ("TIERSCOPE_MAX_WAITING", "0"),
        ("TIERSCOPE_MAX_TENANTS", "some"),
        ("TIERSCOPE_REUSE_CURVE", "perhaps"),
        ("TIERSCOPE_RECORD_TRACE", "everything"),
        ("TIERSCOPE_RECORD_TRACE", "1 KiB"),
        ("TIERSCOPE_MAX_TENANTS", "-1"),
        ("TIERSCOPE_MAX_TENANTS", "101"),
        ("TIERSCOPE_TENANT_QUOTA", "0"),
        ("TIERSCOPE_TENANT_QUOTA", "1.1"),
        ("TIERSCOPE_TENANT_QUOTA", "half"),
        ("TIERSCOPE_LOG_LEVEL", "LOUD"),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "mysql://user:secret@host/name"),
        ("DATABASE_URL", "postgres://user:sec/ret@host/name"),
        ("REDIS_URL", "redis://:sec/ret@host:6379/0"),
        ("TIERSCOPE_REMOTE_URL", "http://:secret@host"),
        ("TIERSCOPE_REMOTE_BYTES", "much"),
        ("TIERSCOPE_REMOTE_TTL_SECONDS", "5"),
        ("TIERSCOPE_DISK_COMPRESSION", "zip"),
        ("TIERSCOPE_REMOTE_COMPRESSION", "int4"),
        ("TIERSCOPE_TRUSTED_ORIGINS", "foo"),
        ("TIERSCOPE_TRUSTED_ORIGINS", "https://a.example,"),
        ("TIERSCOPE_TRUSTED_ORIGINS", "https://a.example/path"),
        ("TIERSCOPE_API_URL", "garbage"),
        ("TIERSCOPE_API_URL", "http://web:99999"),
        ("TIERSCOPE_API_URL", "http://a,http://b"),
        ("TIERSCOPE_ALLOWED_HOSTS", " "),
        ("TIERSCOPE_ALLOWED_HOSTS", "https://a.example"),
        ("TIERSCOPE_ALLOWED_HOSTS", "a.example:8000"),
        ("TIERSCOPE_TRUSTED_PROXIES", "proxy"),
        ("TIERSCOPE_TRUSTED_PROXIES", "10.0.0.1/8"),
    ],
)
def test_a_wrong_value_fails_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(EnvValidationError, match=f'"{name}" invalid') as raised:
        load(monkeypatch, **{name: value})
    assert "sec" not in str(raised.value)


def test_a_home_that_cannot_be_made_fails_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvValidationError, match='"TIERSCOPE_HOME" invalid'):
        load(monkeypatch, TIERSCOPE_HOME=str(tmp_path / "file" / "home"))


def test_the_secret_key_is_made_once_and_only_its_owner_can_read_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first = load(monkeypatch, TIERSCOPE_HOME=str(home))["SECRET_KEY"]
    assert load(monkeypatch)["SECRET_KEY"] == first
    assert len(first) >= 50
    assert (home / "secret-key").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_socket_in_a_home_too_deep_for_one_moves_to_a_short_private_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 100)
    monkeypatch.delenv("REDIS_URL")
    settings = load(monkeypatch, TIERSCOPE_HOME=str(deep))
    assert len(os.fsencode(settings["VALKEY_SOCKET"])) < 100
    assert settings["VALKEY_IS_EMBEDDED"]


def test_a_home_may_be_called_as_somebody_likes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "50%41 #1?; of it"
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name)
    settings = load(monkeypatch, TIERSCOPE_HOME=str(home))
    assert settings["DATABASES"]["default"]["NAME"] == str(home / "tierscope.sqlite3")
    assert parse_url(settings["REDIS_URL"])["path"] == str(settings["VALKEY_SOCKET"])  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("text", "num_bytes"), [("2 GiB", 2 * 2**30), ("0", 0), ("", None)])
def test_tier_sizes_are_written_as_people_write_them(
    monkeypatch: pytest.MonkeyPatch, text: str, num_bytes: int | None
) -> None:
    assert load(monkeypatch, TIERSCOPE_DISK_BYTES=text)["TIER_BYTES"]["disk"] == num_bytes


def test_the_remote_tier_lies_in_our_own_valkey_or_where_it_is_said_or_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch)["REMOTE_URL"] == "", "the tests name a REDIS_URL: somebody else's"
    assert load(monkeypatch, TIERSCOPE_REMOTE_URL="redis://kv:6379/3")["REMOTE_URL"] == "redis://kv:6379/3"
    monkeypatch.delenv("TIERSCOPE_REMOTE_URL")
    monkeypatch.delenv("REDIS_URL")
    own = load(monkeypatch)
    assert own["REMOTE_URL"] == own["REDIS_URL"].replace("db=0", "db=1")


def test_the_operators_guide_names_every_variable_and_every_check() -> None:
    guide = (SETTINGS.parents[1] / "docs" / "operating.md").read_text()
    variables = re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', SETTINGS.read_text())
    sizes = [f"TIERSCOPE_{tier}_BYTES" for tier in ("GPU", "CPU", "DISK", "REMOTE")]
    sizes += [f"TIERSCOPE_{tier}_COMPRESSION" for tier in ("DISK", "REMOTE")]
    ids = re.findall(r"tierscope\.[EW]\d+", (SETTINGS.parent / "checks.py").read_text())
    assert len(variables) > 15
    assert len(ids) > 5
    assert [name for name in {*variables, *sizes, *ids} if f"`{name}`" not in guide] == []


def test_lists_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    told = load(
        monkeypatch,
        TIERSCOPE_ALLOWED_HOSTS="a.example, .b.example,[::1],*",
        TIERSCOPE_TRUSTED_ORIGINS="https://a.example:8443, https://*.b.example",
        TIERSCOPE_TRUSTED_PROXIES="::1, 10.0.0.0/8",
        TIERSCOPE_API_URL="http://web:8000",
    )
    assert told["ALLOWED_HOSTS"] == ["a.example", ".b.example", "[::1]", "*"]
    assert told["CSRF_TRUSTED_ORIGINS"] == ["https://a.example:8443", "https://*.b.example"]
    assert told["TRUSTED_PROXIES"] == ["::1", "10.0.0.0/8"]
    assert told["API_URL"] == "http://web:8000"


def test_what_is_not_said_is_this_host_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    told = load(monkeypatch, TIERSCOPE_ALLOWED_HOSTS="", TIERSCOPE_API_URL="")
    assert told["ALLOWED_HOSTS"] == ["localhost", "127.0.0.1", "[::1]"]
    assert (told["CSRF_TRUSTED_ORIGINS"], told["TRUSTED_PROXIES"]) == ([], [])
    assert told["API_URL"] == told["LOCAL_URL"]
