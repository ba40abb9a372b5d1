"""/metrics of the web process: what every living engine publishes, merged, and this process's own HTTP metrics.

Knows nothing about which metrics engines have; adds nothing to them but the `engine` label where it is missing.
"""

import hmac
import json
from collections.abc import Iterable, Iterator, Mapping

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from dashboard import valkey
from dashboard.http_metrics import registry as http_registry


class EnginesCollector(Collector):
    """The newest exposition of every engine that is alive; a dead one's series are gone."""

    def collect(self) -> Iterator[Metric]:
        broker_up = GaugeMetricFamily("tierscope_broker_up", "1 where Valkey, the broker, could be read, else 0.")
        try:
            texts = read_expositions(valkey.client())
        except redis.RedisError:
            texts = {}
            broker_up.add_metric([], 0)
        else:
            broker_up.add_metric([], 1)
        yield broker_up
        yield from merge(texts)


def read_expositions(connection: redis.Redis) -> dict[str, str]:
    """Exposition text by name of the engines alive; one that is loading has none yet."""
    prefix = valkey.engine_key("")
    published = {key.removeprefix(prefix): connection.get(key) for key in valkey.engine_keys(connection)}
    texts = {engine: json.loads(str(told)).get("exposition") for engine, told in published.items() if told}
    return {engine: text for engine, text in texts.items() if text}


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
