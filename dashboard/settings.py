"""Every setting of the Django project. A wrong environment variable fails at start with its name."""

import hashlib
import secrets
import ssl
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import django_stubs_ext
from csp.constants import NONE, SELF, UNSAFE_INLINE
from environs import Env, EnvError, EnvValidationError, validate

from dashboard import log_lines
from dashboard.secret_files import read_or_create
from dashboard.server_urls import DATABASE_ENGINES, DATABASE_EXPECTED, REDIS_EXPECTED, redis_problem
from dashboard.settings_lists import ALLOWED_HOST, API_ADDRESS, PROXY, TRUSTED_ORIGIN
from dashboard.sizes import parse_size
from dashboard.tier_modes import MIN_TENANT_QUOTA

django_stubs_ext.monkeypatch()  # ModelAdmin[Source] and its like exist for the type checker only

env = Env()
T = TypeVar("T")
BASE_DIR = Path(__file__).resolve().parent.parent

# -- Where and who ---------------------------------------------------------------------------------------------------
TIERSCOPE_HOME = Path(env.str("TIERSCOPE_HOME", str(BASE_DIR / "var"))).expanduser().absolute()
PORT = env.int("PORT", 8000, validate=validate.Range(min=1, max=65535))
BIND = env.str("TIERSCOPE_BIND", "127.0.0.1")
DEBUG = env.bool("TIERSCOPE_DEBUG", False)


def _secret_key() -> str:
    """Made at the first start and kept: sessions outlive a restart."""
    try:
        return read_or_create(TIERSCOPE_HOME / "secret-key", lambda: secrets.token_urlsafe(50))
    except OSError as error:
        message = f'Environment variable "TIERSCOPE_HOME" invalid: {TIERSCOPE_HOME} cannot be used ({error.strerror}).'
        raise EnvValidationError(message, [message]) from None


SECRET_KEY = env.str("TIERSCOPE_SECRET_KEY", "") or _secret_key()


def _right(name: str, read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise EnvValidationError(f'Environment variable "{name}" invalid: {error}', [str(error)]) from None


_LOOPBACK = "localhost,127.0.0.1,[::1]"
ALLOWED_HOSTS = _right("TIERSCOPE_ALLOWED_HOSTS", ALLOWED_HOST.all, env.str("TIERSCOPE_ALLOWED_HOSTS", "") or _LOOPBACK)
CSRF_TRUSTED_ORIGINS = _right("TIERSCOPE_TRUSTED_ORIGINS", TRUSTED_ORIGIN.all, env.str("TIERSCOPE_TRUSTED_ORIGINS", ""))
TRUSTED_PROXIES = _right("TIERSCOPE_TRUSTED_PROXIES", PROXY.all, env.str("TIERSCOPE_TRUSTED_PROXIES", ""))
METRICS_TOKEN = env.str("TIERSCOPE_METRICS_TOKEN", "")
REEXPORT = env.bool("TIERSCOPE_REEXPORT", False)  # watched engines on /metrics, too
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(BIND, BIND)
LOCAL_URL = f"http://{f'[{_REACHABLE}]' if ':' in _REACHABLE else _REACHABLE}:{PORT}"
# Where the worker reaches /v1: the sample traffic is sent like anybody else's.
API_URL = _right("TIERSCOPE_API_URL", API_ADDRESS.one, env.str("TIERSCOPE_API_URL", "") or LOCAL_URL)
SAMPLE_TRAFFIC = env.bool("TIERSCOPE_SAMPLE_TRAFFIC", True)

# -- The embedded engine ---------------------------------------------------------------------------------------------
_ENGINE_NAME = validate.Regexp(
    r"^[a-z0-9][a-z0-9-]{0,31}$", error="Expected up to 32 lower-case letters, digits and dashes."
)
ENGINE_NAME = env.str("TIERSCOPE_ENGINE", "local", validate=_ENGINE_NAME)
MODEL_PATH = env.str("TIERSCOPE_MODEL", "")
DEVICE = env.str("TIERSCOPE_DEVICE", "auto", validate=validate.OneOf(["auto", "cpu", "cuda"]))
BLOCK_SIZE = env.int("TIERSCOPE_BLOCK_SIZE", 16, validate=validate.OneOf([8, 16, 32, 64, 128]))


def _size(name: str) -> int | None:
    """Bytes in a variable written like "2 GiB"; None where it is not set (then the machine decides)."""
    text = env.str(name, "")
    try:
        return parse_size(text) if text else None
    except ValueError as error:
        raise EnvValidationError(f'Environment variable "{name}" invalid: {error}', [str(error)]) from None


def _recorded_bytes(name: str) -> int:
    """0 where nothing is to be recorded."""
    num_bytes = _size(name) or 0
    if 0 < num_bytes < 1 << 20:
        message = f'Environment variable "{name}" invalid: expected a size of 1 MiB or more, or 0 for none.'
        raise EnvValidationError(message, [message])
    return num_bytes


def _compression(name: str) -> str:
    return env.str(name, "none", validate=validate.OneOf(["none", "fp16", "bf16", "int8"]))


TIER_COMPRESSION = {tier: _compression(f"TIERSCOPE_{tier.upper()}_COMPRESSION") for tier in ("disk", "remote")}
TENANT_QUOTA = env.float("TIERSCOPE_TENANT_QUOTA", 1.0, validate=validate.Range(min=MIN_TENANT_QUOTA, max=1))
TIER_BYTES = {tier: _size(f"TIERSCOPE_{tier.upper()}_BYTES") for tier in ("gpu", "cpu", "disk", "remote")}

# -- Traffic: what /v1 takes, and how long it lets a request wait ------------------------------------------------------
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_WAITING_REQUESTS = env.int("TIERSCOPE_MAX_WAITING", 128, validate=validate.Range(min=1))
START_SECONDS = env.int("TIERSCOPE_START_SECONDS", 120, validate=validate.Range(min=1))  # sent, until it starts
MAX_TENANTS = env.int("TIERSCOPE_MAX_TENANTS", 20, validate=validate.Range(min=0, max=100))  # counted by name
REUSE_CURVE = env.bool("TIERSCOPE_REUSE_CURVE", True)  # which capacity each prompt token would have needed
RECORD_TRACE_BYTES = _recorded_bytes("TIERSCOPE_RECORD_TRACE")  # of files of an engine's own traffic; 0: none
LOADING_SECONDS = 3  # how long a request waits for an engine that is loading its model before it is told so
DRAIN_SECONDS = 10  # how long running requests may go on when their worker is asked to stop
FLUSH_SECONDS = 10  # and then what lies in memory is written to disk for this long


# -- Valkey: broker, results, token streams, engine snapshots ----------------------------------------------------------
def _socket_path() -> Path:
    """A Unix socket path has room for 107 bytes; a deeper home gets a private folder under the temporary one."""
    path = TIERSCOPE_HOME / "valkey.sock"
    if len(str(path).encode()) < 100:
        return path
    digest = hashlib.sha256(str(TIERSCOPE_HOME).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"tierscope-{digest}" / "valkey.sock"


def _redis_url(name: str, url: str) -> str:
    """Somebody else's; "" for our own."""
    if problem := redis_problem(url) if url else "":
        message = f'Environment variable "{name}" invalid: it {problem}. {REDIS_EXPECTED}'
        raise EnvValidationError(message, [message]) from None
    return url


VALKEY_SOCKET = _socket_path()
REDIS_URL = _redis_url("REDIS_URL", env.str("REDIS_URL", "")) or f"unix://{quote(str(VALKEY_SOCKET))}?db=0"
VALKEY_IS_EMBEDDED = not env.str("REDIS_URL", "")
# The remote tier: where it is not said otherwise our own Valkey has it, in a database apart, for the broker's is walked
# through by name; somebody else's server holds no blocks unless that is asked for.
_OWN_REMOTE_URL = f"unix://{quote(str(VALKEY_SOCKET))}?db=1" if VALKEY_IS_EMBEDDED else ""
REMOTE_URL = _redis_url("TIERSCOPE_REMOTE_URL", env.str("TIERSCOPE_REMOTE_URL", "")) or _OWN_REMOTE_URL
REMOTE_TTL_SECONDS = env.int("TIERSCOPE_REMOTE_TTL_SECONDS", 86_400, validate=validate.Range(min=60))
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=")
CELERY_RESULT_BACKEND = CELERY_BROKER_URL
if REDIS_URL.startswith("rediss://"):
    # redis-py checks certificates by itself; Celery's backend does not start until it is told to.
    CELERY_BROKER_USE_SSL = CELERY_REDIS_BACKEND_USE_SSL = {"ssl_cert_reqs": ssl.CERT_REQUIRED}
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_EXPIRES = 3600
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 5}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BEAT_SCHEDULE = {
    # Every second it is asked which sources are due: they are on multiples of their own intervals on the wall clock.
    "record-due": {"task": "dashboard.tasks.record_due", "schedule": 1.0, "options": {"expires": 5}},
    "backfill-due": {"task": "dashboard.tasks.backfill_due", "schedule": 10.0, "options": {"expires": 10}},
    "replay-due": {"task": "dashboard.tasks.replay_due", "schedule": 10.0, "options": {"expires": 10}},
    "policies-due": {"task": "dashboard.tasks.policies_due", "schedule": 5.0, "options": {"expires": 5}},
    "discover-due": {"task": "dashboard.tasks.discover_due", "schedule": 5.0, "options": {"expires": 30}},
    "evaluate-alerts": {"task": "dashboard.tasks.evaluate_alerts", "schedule": 30.0, "options": {"expires": 30}},
    "tell-webhooks": {"task": "dashboard.tasks.tell_webhooks", "schedule": 10.0, "options": {"expires": 10}},
    "remove-due": {"task": "dashboard.tasks.remove_due", "schedule": 10.0, "options": {"expires": 10}},
    "settle": {"task": "dashboard.tasks.settle", "schedule": 60.0, "options": {"expires": 30}},
    "expire": {"task": "dashboard.tasks.expire", "schedule": 600.0, "options": {"expires": 300}},
}


# -- Database ---------------------------------------------------------------------------------------------------------
def _database() -> dict[str, Any]:
    """Never repeats the URL, which may hold a password, nor what the parser says about its parts."""
    try:
        told = env.dj_db_url(
            "DATABASE_URL", f"sqlite:///{quote(str(TIERSCOPE_HOME / 'tierscope.sqlite3'))}", conn_max_age=60
        )
        if told["ENGINE"] not in DATABASE_ENGINES:
            raise ValueError
    except (EnvError, ValueError):
        message = f'Environment variable "DATABASE_URL" invalid. {DATABASE_EXPECTED}'
        raise EnvValidationError(message, [message]) from None
    return dict(told) | {"OPTIONS": _DATABASE_OPTIONS[told["ENGINE"]] | told.get("OPTIONS", {})}


_DATABASE_OPTIONS: dict[str, dict[str, Any]] = {
    # IMMEDIATE: a writer waits for its turn at BEGIN, not at its first write; 20 s is far above any write here.
    "django.db.backends.sqlite3": {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32000;",
    },
    # libpq would wait for two minutes for a host that says nothing.
    "django.db.backends.postgresql": {"connect_timeout": 5},
}
DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# -- Django -----------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "dashboard",
    "dashboard.apps.TierscopeAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "axes",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
]
MIDDLEWARE = [
    "dashboard.http_metrics.http_metrics_middleware",
    "dashboard.middleware.api_shortcut_middleware",
    "dashboard.middleware.AsyncWhiteNoiseMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.zone.zone_middleware",
    "csp.middleware.CSPMiddleware",
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# Guessing is for one name from one address: somebody else's tries never lock the owner out, and nobody is out for long.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=5)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "dashboard.login_throttle.throttled"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.views.alerts.firing",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = ["dashboard.formats"]
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = TIERSCOPE_HOME / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "dashboard.static_storage.HashedStaticFilesStorage"},
}
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.bool("TIERSCOPE_HTTPS", False)
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES
# Plotly sizes its elements through style attributes; scripts come from our own files only.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# -- Logging ----------------------------------------------------------------------------------------------------------
_LEVELS = validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {
        "news": {"()": "django.utils.log.CallbackFilter", "callback": log_lines.is_news},
        "short": {"()": "django.utils.log.CallbackFilter", "callback": log_lines.in_short},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["short"]}},
    "root": {"handlers": ["console"], "level": env.str("TIERSCOPE_LOG_LEVEL", "INFO", validate=_LEVELS)},
    # A task a second asks what is due: its comings and goings are no news, its failures are errors. A login that went
    # well is none either: axes would tell five lines about it.
    "loggers": {
        name: {"level": "WARNING"}
        for name in ("axes", "httpx", "celery.worker.strategy", "celery.beat", "celery.app.trace")
    }
    | {"django.request": {"filters": ["news"]}},
}
