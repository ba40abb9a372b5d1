"""What is stored of secrets that we make: who may send traffic, who may read numbers. Never the secret itself."""

from django.core.exceptions import ValidationError
from django.db import models

from dashboard import tenants


def validate_tenant(name: str) -> None:
    try:
        tenants.check_tenant(name)
    except ValueError as error:
        raise ValidationError(str(error), code="invalid") from None


class Secret(models.Model):
    """Shown once when it is made, then known by its SHA-256 hash; `prefix` are its first characters."""

    prefix = models.CharField(max_length=12, editable=False)
    hashed_key = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    is_active = models.BooleanField(default=True)

    name: "models.CharField[str, str]"

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class ApiKey(Secret):
    """Who may send traffic."""

    name = models.CharField(
        max_length=100,
        unique=True,
        error_messages={"unique": "A key of this name already exists; choose another name."},
    )
    tenant = models.CharField(
        max_length=tenants.MAX_LENGTH,
        blank=True,
        validators=[validate_tenant],
        help_text="Keys of one tenant reuse each other's prompts, and nobody else's. Keys without one share a common "
        "pool.",
    )

    class Meta(Secret.Meta):
        abstract = False
        verbose_name = "API key"
        verbose_name_plural = "API keys"


class ReadToken(Secret):
    """Who may read numbers of all engines and tenants through /api/v1, and do nothing else."""

    name = models.CharField(
        max_length=100,
        unique=True,
        error_messages={"unique": "A token of this name already exists; choose another name."},
    )

    class Meta(Secret.Meta):
        abstract = False
