"""What pages add up by name stays apart: sources and embedded engines, long names, samples on /metrics."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily

from dashboard import valkey as names
from dashboard.metrics import as_one
from dashboard.models import EngineRun, Series, Source
from dashboard.services.recording import record
from dashboard.services.tiers import ensure_settings
from dashboard.sources.detection import read
from dashboard.sources.discovery import Found, source_name
from dashboard.sources.reading import engine_name
from tests.stored import rows

pytestmark = [pytest.mark.usefixtures("valkey"), pytest.mark.django_db]

REFUSED = "is an embedded engine: both would be added up"


def _text(value: int, *labels: str) -> str:
    return "".join(f"vllm:prompt_tokens_total{{{each}}} {value}\n" for each in labels or ['model_name="m"'])


def _read(source: Source, text: str, after_seconds: int = 0) -> None:
    now = timezone.now() + timedelta(seconds=after_seconds)
    Source.objects.filter(pk=source.pk).update(due_at=now)
    told = record(source.pk, now=now, connection=names.client(), fetch_text=lambda target: text)
    assert told, Source.objects.get().last_error


def _prompt_tokens(engine: str) -> int:
    return sum(row.value for row in rows(engine=engine, metric="prompt_tokens", resolution=86400))


@pytest.mark.parametrize("name", ["local", "east"])
def test_a_source_is_not_called_like_an_embedded_engine(client: Client, name: str) -> None:
    ensure_settings("east", {"gpu": 1})
    client.force_login(User.objects.create_superuser("ada"))
    form = {"name": name, "kind": "auto", "url": "http://127.0.0.1:1/metrics", "interval_seconds": "10"}
    assert REFUSED in client.post("/admin/dashboard/source/add/", form).content.decode()
    with pytest.raises(CommandError, match=REFUSED):
        call_command("addsource", name, "http://127.0.0.1:1/metrics")
    assert not Source.objects.exists()


def test_a_source_gives_way_to_an_engine_that_comes_and_goes_on_counting() -> None:
    source = Source.objects.create(name="east", kind="vllm", url="http://gpu-7/metrics")
    labels = ['model_name="m"', 'model_name="m",engine="1"']
    _read(source, _text(100, *labels))
    ensure_settings("east", {"gpu": 1})
    source.refresh_from_db()
    assert source.name == "east-watched"
    _read(source, _text(130, *labels), after_seconds=20)
    assert set(Series.objects.values_list("engine", flat=True)) == {"east-watched", "east-watched/1"}
    assert EngineRun.objects.count() == 2
    assert (_prompt_tokens("east-watched"), _prompt_tokens("east-watched/1")) == (30, 30)


def _renamed(client: Client, source: Source, name: str) -> None:
    client.force_login(User.objects.get_or_create(username="ada", is_staff=True, is_superuser=True)[0])
    form = {"name": name, "kind": source.kind, "url": source.url, "interval_seconds": "10", "is_enabled": "on"}
    answer = client.post(f"/admin/dashboard/source/{source.pk}/change/", form)
    assert answer.status_code == 302, answer.content.decode()


def test_a_source_that_an_admin_renames_takes_its_past_along_and_goes_on_counting(client: Client) -> None:
    source = Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-7/metrics")
    labels = ['model_name="m",engine="0"', 'model_name="m",engine="gpu-7/1"']
    _read(source, _text(100, *labels))
    _read(source, _text(110, *labels), after_seconds=10)
    _renamed(client, source, "gpu-9")
    _read(source, _text(130, *labels), after_seconds=20)
    assert set(Series.objects.values_list("engine", flat=True)) == {"gpu-9/0", "gpu-9/gpu-7/1"}
    assert (_prompt_tokens("gpu-9/0"), _prompt_tokens("gpu-9/gpu-7/1")) == (30, 30)


def test_a_name_that_a_source_had_before_is_free_for_another(client: Client) -> None:
    source = Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-7/metrics")
    for value, seconds in ((100, 0), (110, 10)):
        _read(source, _text(value), after_seconds=seconds)
    _renamed(client, source, "gpu-7-old")
    other = Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-8/metrics")
    for value, seconds in ((5, 20), (8, 30)):
        _read(other, _text(value), after_seconds=seconds)
    assert (_prompt_tokens("gpu-7"), _prompt_tokens("gpu-7-old")) == (3, 10)


def test_engines_that_had_the_new_name_already_stay_as_they_are(client: Client) -> None:
    """Of before sources took their past along."""
    source = Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-7/metrics")
    _read(source, _text(100))
    before = {series.pk for series in Series.objects.all()}
    Source.objects.update(name="gpu-9")
    source.refresh_from_db()
    _read(source, _text(100), after_seconds=10)
    _renamed(client, source, "gpu-7")
    assert {series.pk for series in Series.objects.filter(engine="gpu-7")} == before
    assert Series.objects.filter(engine="gpu-9").exists()


def test_what_is_read_while_a_source_is_renamed_is_not_booked_under_the_old_name() -> None:
    source = Source.objects.create(name="east", kind="vllm", url="http://gpu-7/metrics", due_at=timezone.now())

    def comes(target: object) -> str:
        ensure_settings("east", {"gpu": 1})
        return _text(100)

    assert not record(source.pk, now=timezone.now(), connection=names.client(), fetch_text=comes)
    assert not Series.objects.exists()


def test_a_new_name_that_is_taken_gets_a_number() -> None:
    Source.objects.create(name="east-watched", url="http://gpu-8/metrics")
    source = Source.objects.create(name="east", kind="vllm", url="http://gpu-7/metrics")
    ensure_settings("east", {"gpu": 1})
    source.refresh_from_db()
    assert source.name == "east-watched-2"


def test_a_target_of_a_list_is_not_called_like_an_engine() -> None:
    assert source_name("east", Found("http://a/metrics", "1"), {"east-1"}).startswith("east-1-")


@pytest.mark.parametrize("label", ["engine", "model_name"])
def test_names_that_differ_behind_the_cut_are_two(label: str) -> None:
    source = Source.objects.create(name="dup", kind="vllm", url="http://gpu-7/metrics")
    one, other = (f'{label}="{"e" * 250}{number}"' for number in (1, 2))
    _read(source, _text(100, one) + _text(1000, other))
    _read(source, _text(110, one) + _text(1007, other), after_seconds=20)
    assert sorted(row.value for row in rows(metric="prompt_tokens", resolution=86400)) == [7, 10]
    assert all(len(series.engine) <= 130 and len(series.model_name) <= 200 for series in Series.objects.all())


def test_a_name_that_fits_stays_as_it_is() -> None:
    assert engine_name("prod", "x" * 125) == f"prod/{'x' * 125}"
    assert [engine for engine, _ in read(_text(1, 'engine="0"'), "vllm").models] == ["0"]


def test_one_series_that_is_told_twice_is_on_metrics_once() -> None:
    def family(value: int) -> CounterMetricFamily:
        told = CounterMetricFamily("tierscope_prompt_tokens", "Tokens.", labels=["engine"])
        told.add_metric(["local"], value)
        return told

    (merged,) = as_one([family(7), family(9)])
    assert [sample.value for sample in merged.samples] == [7]
