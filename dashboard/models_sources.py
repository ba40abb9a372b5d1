"""What is stored about where numbers come from: sources, and mappings that admins type. Knows nothing about series."""

from collections.abc import Callable

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils import timezone

from dashboard.typed_costs import parse_loads, parse_prefill

MAX_SELECTOR = 500
_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
NAME_WORDS = "A name begins with a letter or digit and has letters, digits, dots, dashes and underscores only."


def _check_prefill(text: str) -> None:
    _checked(parse_prefill, text)


def _check_loads(text: str) -> None:
    _checked(parse_loads, text)


def _checked(parse: Callable[[str], object], text: str) -> None:
    try:
        parse(text)
    except ValueError as error:
        raise ValidationError(str(error), code="invalid") from None


def _taken(what: str) -> dict[str, str]:
    return {"unique": f"A {what} of this name already exists; choose another name."}


class CacheTier(models.TextChoices):
    GPU = "gpu", "GPU"
    CPU = "cpu", "CPU DRAM"
    DISK = "disk", "Disk"
    REMOTE = "remote", "Remote"
    UNATTRIBUTED = "unattributed", "Unattributed"


class Mapping(models.Model):
    """What an admin typed about a metrics text that no table knows; sources of the kind "mapping" are read by one."""

    name = models.CharField(max_length=64, unique=True, error_messages=_taken("mapping"))
    engine_label = models.CharField(
        max_length=64, blank=True, default="engine", help_text="The label that tells engines behind one address apart."
    )
    model_label = models.CharField(
        max_length=64, blank=True, default="model_name", help_text="The label with the model's name."
    )
    is_complete = models.BooleanField(
        "these are all hits",
        default=False,
        help_text="What is not hit was computed: computed tokens follow from the others. Leave it off where hits in "
        "some tier are not counted.",
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class MappingRow(models.Model):
    """Samples called `name` whose `label` is `value` (both empty: all of them) add up to `means` of `cache_tier`."""

    class Means(models.TextChoices):
        PROMPT_TOKENS = "prompt_tokens", "Prompt tokens"
        HIT_TOKENS = "hit_tokens", "Hit tokens"
        COMPUTED_TOKENS = "computed_tokens", "Computed tokens"
        GENERATED_TOKENS = "generated_tokens", "Generated tokens"
        RESIDENT_TOKENS = "resident_tokens", "Tokens that lie in the tier (gauge)"
        CAPACITY_TOKENS = "capacity_tokens", "Tokens that the tier has room for (gauge)"
        USED_BYTES = "used_bytes", "Bytes used in the tier (gauge)"
        CAPACITY_BYTES = "capacity_bytes", "Bytes that the tier has (gauge)"

    mapping = models.ForeignKey(Mapping, on_delete=models.CASCADE, related_name="rows")
    name = models.CharField("metric", max_length=200)
    label = models.CharField(max_length=64, blank=True)
    value = models.CharField(max_length=200, blank=True)
    means = models.CharField(max_length=24, choices=Means)
    cache_tier = models.CharField("tier", max_length=16, choices=CacheTier, blank=True)

    class Meta:
        verbose_name = "row"
        ordering = ["id"]

    def __str__(self) -> str:
        told = f'{self.name}{{{self.label}="{self.value}"}}' if self.label else self.name
        return " ".join(filter(None, [told, "is", self.means, self.cache_tier]))


ACCESS_FIELDS = ("token", "headers", "tls_ca", "tls_is_unchecked", "tls_cert", "tls_key", "tls_server_name")


class Access(models.Model):
    """How a server that is not ours lets itself be read. Token and headers are written, and never shown again."""

    token = models.CharField(max_length=4000, blank=True)
    headers = models.TextField(max_length=20_000, blank=True)
    tls_ca = models.TextField(
        "authorities",
        max_length=100_000,
        blank=True,
        help_text="Certificates to trust instead of the system's, as PEM; for an authority of your own.",
    )
    tls_is_unchecked = models.BooleanField(
        "do not check its certificate",
        default=False,
        help_text="Anybody on the way may then answer in its place, and sees the token.",
    )
    tls_cert = models.TextField(
        "our certificate",
        max_length=100_000,
        blank=True,
        help_text="For a server that wants to know who asks: a certificate as PEM, with those that vouch for it.",
    )
    tls_key = models.TextField(max_length=20_000, blank=True)
    tls_server_name = models.CharField(
        "name in its certificate",
        max_length=253,
        blank=True,
        help_text="Where that is another one than in the address.",
    )

    class Meta:
        abstract = True

    @property
    def warning(self) -> str:
        """What whoever looks at it should know; "" where nothing is wrong, or there is no certificate."""
        place = getattr(self, "url", "") or getattr(self, "location", "")
        is_wrong = self.tls_is_unchecked and place.lower().startswith("https:")
        return "Its certificate is not checked: anybody on the way may answer." if is_wrong else ""


class EngineKind(models.TextChoices):
    """What a text is read as. A person chooses one of `CHOSEN_KINDS`; a replay's numbers are read from no text."""

    EMBEDDED = "embedded", "Embedded engines"
    AUTO = "auto", "Detect"
    TIERSCOPE = "tierscope", "Tierscope"
    VLLM = "vllm", "vLLM 0.32 or newer"
    VLLM_OLD = "vllm_old", "vLLM before 0.32"
    SGLANG = "sglang", "SGLang"
    LMCACHE_MP = "lmcache_mp", "LMCache multi-process"
    LMCACHE = "lmcache", "LMCache in-process"
    KVBM = "kvbm", "NVIDIA Dynamo KVBM"
    TRTLLM = "trtllm", "TensorRT-LLM"
    LLAMACPP = "llamacpp", "llama.cpp server"
    MAPPING = "mapping", "Something else: by a mapping"
    REPLAY = "replay", "Replays of traces"


CHOSEN_KINDS = [choice for choice in EngineKind.choices if choice[0] not in (EngineKind.EMBEDDED, EngineKind.REPLAY)]


class Discovery(Access):
    """A list of targets that somebody else keeps: sources come and go with it."""

    class Kind(models.TextChoices):
        FILE = "file", "File (Prometheus file_sd)"
        HTTP = "http", "HTTP (Prometheus http_sd)"
        PROMETHEUS = "prometheus", "What a Prometheus reads"

    name = models.CharField(max_length=32, unique=True, validators=[_NAME], error_messages=_taken("discovery"))
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.FILE)
    location = models.CharField(
        max_length=500,
        help_text="A path like /etc/targets/*.json (JSON or YAML) on the worker's machine, or an address; of a "
        "Prometheus one like http://prometheus:9090.",
    )
    selector = models.CharField(
        "of a Prometheus only",
        max_length=MAX_SELECTOR,
        blank=True,
        help_text='Which of its series, like {job="vllm"}; empty: all engines that it has.',
    )
    source_kind = models.CharField("its engines are", max_length=16, choices=EngineKind, default=EngineKind.AUTO)
    mapping = models.ForeignKey(Mapping, null=True, blank=True, on_delete=models.PROTECT, related_name="discoveries")
    interval_seconds = models.PositiveIntegerField(
        "read engines every", default=10, validators=[MinValueValidator(1), MaxValueValidator(3600)]
    )
    refresh_seconds = models.PositiveIntegerField(
        "read the list every", default=60, validators=[MinValueValidator(5), MaxValueValidator(86_400)]
    )
    is_enabled = models.BooleanField("read it", default=True)
    due_at = models.DateTimeField(default=timezone.now, editable=False)
    last_tried_at = models.DateTimeField(null=True, editable=False)
    last_ok_at = models.DateTimeField(null=True, editable=False)
    last_num_targets = models.PositiveIntegerField(null=True, editable=False)
    last_error = models.TextField(blank=True, editable=False)

    class Meta(Access.Meta):
        abstract = False
        ordering = ["name"]
        verbose_name_plural = "discoveries"

    def __str__(self) -> str:
        return self.name


class Source(Access):
    """Where one or more engines' numbers are read from: a text, or with a `selector` series of a Prometheus."""

    Kind = EngineKind

    name = models.CharField(max_length=64, unique=True, validators=[_NAME], error_messages=_taken("source"))
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.AUTO)
    # No URLField: its validator refuses hosts without a dot, which is how containers call each other (http://vllm:8000).
    url = models.CharField("URL", max_length=200, blank=True, help_text="Empty for the embedded engines.")
    selector = models.CharField(
        "series of a Prometheus",
        max_length=MAX_SELECTOR,
        blank=True,
        help_text="Empty where the address is the engine's own text. Where it is a Prometheus: which of its series are "
        'this engine\'s, like {job="vllm", instance="gpu-7:8000"}.',
    )
    mapping = models.ForeignKey(
        Mapping,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="sources",
        help_text="For the kind “by a mapping” only.",
    )
    interval_seconds = models.PositiveIntegerField(
        default=10, validators=[MinValueValidator(1), MaxValueValidator(3600)]
    )
    typed_prefill = models.CharField(
        "computing prompts",
        max_length=400,
        blank=True,
        validators=[_check_prefill],
        help_text="Tokens a second, like 12000; or by position in the prompt, like 0: 15000, 8192: 9000, 32768: 4000.",
    )
    typed_loads = models.CharField(
        "loading from slower tiers",
        max_length=100,
        blank=True,
        validators=[_check_loads],
        help_text="GiB a second, like cpu: 20, disk: 3, remote: 1.5.",
    )
    discovery = models.ForeignKey(
        Discovery, null=True, editable=False, on_delete=models.SET_NULL, related_name="sources"
    )
    gone_at = models.DateTimeField(null=True, editable=False, help_text="Since when its discovery does not list it.")
    removed_at = models.DateTimeField(null=True, editable=False, help_text="Since when it is being removed.")
    is_enabled = models.BooleanField(default=True)
    due_at = models.DateTimeField(
        default=timezone.now, editable=False, help_text="The next scrape; while one runs, when its claim ends."
    )
    last_scraped_at = models.DateTimeField(null=True, editable=False)
    first_ok_at = models.DateTimeField(null=True, editable=False, help_text="Before it, history may be imported.")
    last_ok_at = models.DateTimeField(null=True, editable=False)
    last_duration_seconds = models.FloatField(null=True, editable=False)
    last_num_samples = models.PositiveIntegerField(null=True, editable=False)
    last_error = models.TextField(blank=True, editable=False)
    detected_kind = models.CharField(
        max_length=16, choices=Kind, blank=True, editable=False, help_text="What its text was last read as."
    )

    class Meta(Access.Meta):
        abstract = False
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def read_as(self) -> str:
        """The kind that was chosen; where it is to be detected, the one that was found, once it was."""
        return (self.detected_kind or self.kind) if self.kind == EngineKind.AUTO else self.kind


class Backfill(Access):
    """One stretch of a source's history that is imported from a Prometheus; `state` is what increases go on from."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="backfills")
    url = models.CharField("Prometheus", max_length=200, help_text="Its address, like http://prometheus:9090.")
    selector = models.CharField(
        max_length=MAX_SELECTOR, help_text='Which of its series are this engine\'s, like {instance="gpu-7:8000"}.'
    )
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    step_seconds = models.PositiveIntegerField(default=60, validators=[MinValueValidator(10), MaxValueValidator(3600)])
    cursor_at = models.DateTimeField(editable=False, help_text="Until when it is imported.")
    claimed_until = models.DateTimeField(editable=False)
    num_samples = models.PositiveBigIntegerField(default=0, editable=False)
    state = models.JSONField(default=list, editable=False)
    last_error = models.TextField(blank=True, editable=False)

    class Meta(Access.Meta):
        abstract = False
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.source} {self.start_at:%Y-%m-%d %H:%M} to {self.end_at:%Y-%m-%d %H:%M} UTC"

    @property
    def is_done(self) -> bool:
        return self.cursor_at >= self.end_at

    @property
    def share(self) -> float:
        """How much of it is imported, 0 to 1."""
        whole = (self.end_at - self.start_at).total_seconds()
        return min(1.0, (self.cursor_at - self.start_at).total_seconds() / whole) if whole > 0 else 1.0
