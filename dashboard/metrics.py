"""/metrics of the web process: what every living engine publishes, merged, and this process's own HTTP metrics.

Knows nothing about which metrics engines have; adds nothing to them but the `engine` label where it is missing.
"""

import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from dashboard import valkey
from dashboard.http_metrics import registry as http_registry
from dashboard.metrics_watched import watched_families


class EnginesCollector(Collector):
    """The newest exposition of every engine that is alive; a dead one's series are gone."""

    def collect(self) -> Iterator[Metric]:
        broker_up = GaugeMetricFamily("tierscope_broker_up", "1 where Valkey, the broker, could be read, else 0.")
        try:
            engines = read_engines(valkey.client())
        except redis.RedisError:
            engines = {}
            broker_up.add_metric([], 0)
        else:
            broker_up.add_metric([], 1)
        yield broker_up
        yield runs(engines)
        texts = {engine: told["exposition"] for engine, told in engines.items() if told.get("exposition")}
        yield from as_one([*merge(texts), *_watched()])


def read_engines(connection: redis.Redis) -> dict[str, dict[str, Any]]:
    """What the engines alive publish, by name; one that is loading has no exposition yet."""
    prefix = valkey.engine_key("")
    published = {key.removeprefix(prefix): connection.get(key) for key in valkey.engine_keys(connection)}
    return {engine: json.loads(str(told)) for engine, told in published.items() if told}


def runs(engines: Mapping[str, Mapping[str, Any]]) -> Metric:
    """Names each run: so we recognise our own engines where somebody asks us to watch them (sources/watched.py)."""
    labels = ["engine", "model_name", "boot_id"]
    family = GaugeMetricFamily(
        "tierscope_engine_info", "Always 1; boot_id names this run of the engine.", labels=labels
    )
    for engine, told in engines.items():
        family.add_metric([engine, str(told.get("model_name", "")), str(told.get("boot_id", ""))], 1)
    return family


def merge(texts: Mapping[str, str]) -> Iterable[Metric]:
    """One family for each name with the samples of all engines (exposition text by engine name)."""
    merged: dict[str, Metric] = {}
    for engine, text in texts.items():
        for family in text_string_to_metric_families(text):
            target = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type, family.unit))
            for sample in family.samples:
                labels = {"engine": engine, **sample.labels}
                target.add_sample(sample.name, labels, sample.value, sample.timestamp, sample.exemplar)
    return merged.values()


def as_one(families: Iterable[Metric]) -> Iterable[Metric]:
    """A family that is told twice, by our engines and of watched ones, once: no text has it or a sample twice."""
    merged: dict[str, Metric] = {}
    for family in families:
        merged.setdefault(family.name, family)
        if merged[family.name] is not family:
            told = set(map(_identity, merged[family.name].samples))
            merged[family.name].samples += [each for each in family.samples if _identity(each) not in told]
    return merged.values()


def _identity(sample: Sample) -> tuple[str, frozenset[tuple[str, str]]]:
    return sample.name, frozenset(sample.labels.items())


def _watched() -> Iterable[Metric]:
    """Nothing unless it is asked for; without the database our own engines are told all the same."""
    if not settings.REEXPORT:
        return []
    try:
        return list(watched_families(timezone.now()))
    except DatabaseError:
        return []


registry = CollectorRegistry(auto_describe=False)
registry.register(EnginesCollector())


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Open where no token is set; the format is the one the scraper asks for."""
    if not _may_read(request):
        response = HttpResponse("Send the metrics token: “Authorization: Bearer …”.\n", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(_Both()), content_type=content_type)


class _Both:
    """Two registries as one, which is all that an encoder reads."""

    def collect(self) -> Iterator[Metric]:
        yield from registry.collect()
        yield from http_registry.collect()


def _may_read(request: HttpRequest) -> bool:
    if not settings.METRICS_TOKEN:
        return True
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
