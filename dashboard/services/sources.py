"""Every write of sources: the embedded one, and engines that somebody asks to be watched. Records nothing."""

from datetime import datetime
from urllib.parse import urlsplit

import redis
from django.core.exceptions import ValidationError

from dashboard import valkey
from dashboard.models import Access, Discovery, Mapping, Source
from dashboard.models_sources import ACCESS_FIELDS
from dashboard.services.source_names import check_name
from dashboard.sources.address import address_problem
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.headers import parse_headers, with_token
from dashboard.sources.http import ScrapeError, fetch_target
from dashboard.sources.prometheus import HistoryError, check_selector
from dashboard.sources.rules import Adapter
from dashboard.sources.target import Allowed, Target, Tls
from dashboard.sources.typed import adapter_of
from dashboard.sources.watched import Fetch, OwnEngineError, exposition_of, refuse_own

EMBEDDED_NAME = "embedded"
EMBEDDED_INTERVAL_SECONDS = (
    5  # reading our own snapshot is one Valkey call: pages may be livelier than for watched engines
)


def ensure_embedded() -> Source:
    """The source of the embedded engines; made at the first call."""
    source, _ = Source.objects.get_or_create(
        kind=Source.Kind.EMBEDDED,
        defaults={"name": EMBEDDED_NAME, "interval_seconds": EMBEDDED_INTERVAL_SECONDS},
    )
    return source


def add_source(
    name: str,
    url: str,
    *,
    kind: str,
    interval_seconds: int,
    now: datetime,
    mapping: Mapping | None = None,
    selector: str = "",
    access: dict[str, str] | None = None,
    fetch_text: Fetch | None = None,
) -> Source:
    """Watches one more engine. Raises ValidationError with sentences for a person."""
    typed = {"name": name, "url": url, "kind": kind, "interval_seconds": interval_seconds, "mapping": mapping}
    source = Source(**typed, **(access or {}), selector=selector, due_at=now)
    check_name(name)
    check_url(url)
    check_mapping(kind, mapping)
    check_series(selector)
    source.full_clean()
    check_not_ours(target_of(source), fetch_text or fetch_target, now)
    source.save()
    return source


def target_of(source: Source) -> Target:
    """All that has to be known to read it."""
    typed = typed_adapter(source.mapping) if source.kind == Source.Kind.MAPPING and source.mapping else None
    access = access_of(_owner(source))
    return Target(source.url, source.kind, typed, access.headers, access.tls, source.selector, source.interval_seconds)


def _owner(source: Source) -> Access:
    """Whose token is sent to an engine. That for a list's server is not: the list would choose who is shown it. That
    for a Prometheus goes there only.
    """
    discovery = source.discovery
    if discovery is None or discovery.kind == Discovery.Kind.HTTP:
        return source
    is_elsewhere = discovery.kind == Discovery.Kind.PROMETHEUS and source.url != discovery.location
    return source if is_elsewhere else discovery


def own_access(source: Source, url: str) -> dict[str, str]:
    """The fields of what lets us into the Prometheus that it is read from; {} where `url` is another server's."""
    its, asked = urlsplit(source.url), urlsplit(url)
    if not source.selector or (its.scheme, its.netloc) != (asked.scheme, asked.netloc):
        return {}
    owner = _owner(source)
    return {name: getattr(owner, name) for name in ACCESS_FIELDS}


def access_of(access: Access) -> Allowed:
    """The headers to send there and whom to trust. What is stored was checked when it was typed."""
    headers = with_token(parse_headers(access.headers), access.token)
    return Allowed(headers, tls_of(access))


def tls_of(access: Access) -> Tls:
    return Tls(access.tls_ca, access.tls_is_unchecked, access.tls_cert, access.tls_key, access.tls_server_name)


def typed_adapter(mapping: Mapping) -> Adapter:
    return adapter_of(
        mapping.rows.all(),
        engine_label=mapping.engine_label,
        model_label=mapping.model_label,
        is_complete=mapping.is_complete,
    )


def check_mapping(kind: str, mapping: Mapping | None) -> None:
    """Raises ValidationError unless exactly what is read by a mapping has one."""
    if (kind == Source.Kind.MAPPING) != (mapping is not None):
        wanted = "Choose a mapping" if mapping is None else "Leave the mapping empty"
        raise ValidationError({"mapping": f"{wanted}: the kind is “{Source.Kind(kind).label}”."})


def start_over(source: Source) -> None:
    """Its address or kind changed: the next reading is another engine's, so it is a baseline and not an increase."""
    source.runs.filter(boot_id="").delete()


def mapping_changed(mapping: Mapping) -> None:
    """The same counters may mean something else now: sources that are read by it start over."""
    for source in mapping.sources.all():
        start_over(source)


def check_series(selector: str) -> None:
    """Raises ValidationError for what chooses no series of a Prometheus; "" is of an engine's own text."""
    try:
        if selector:
            check_selector(selector)
    except HistoryError as error:
        raise ValidationError({"selector": str(error)}) from None


def check_not_ours(target: Target, fetch_text: Fetch, now: datetime) -> None:
    """Raises ValidationError where our own engines are told there. What cannot be read now is read later."""
    try:
        refuse_own(exposition_of(target, fetch_text, now), valkey.client())
    except OwnEngineError as own:
        raise ValidationError({"url": str(own)}) from None
    except (ScrapeError, ExpositionError, redis.RedisError):
        return


def check_url(url: str) -> None:
    """Raises ValidationError unless `url` is an http(s) address that can be asked, without credentials."""
    if problem := address_problem(url):
        raise ValidationError({"url": problem})
