"""The launcher's view of the settings: where, which port, what to print. Knows nothing about Django's apps."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from environs import EnvError


class EnvironmentVariableError(Exception):
    """A variable that is unknown or has a wrong value; the sentence names it."""


@dataclass(frozen=True)
class Environment:
    home: Path
    bind: str
    port: int
    url: str
    redis_url: str
    is_valkey_embedded: bool
    engine_key: str
    traffic_key: str
    traffic_lock: str

    @property
    def password_file(self) -> Path:
        return self.home / "admin-password"

    @property
    def outside_processes(self) -> frozenset[str]:
        """Processes of the Procfile that somebody else runs."""
        return frozenset() if self.is_valkey_embedded else frozenset({"valkey"})

    @property
    def child_variables(self) -> dict[str, str]:
        """The Procfile says `python` and means this one; everybody has the same home."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return os.environ | {"PATH": path, "TIERSCOPE_HOME": str(self.home)}

    def welcome(self, is_new: bool) -> str:
        """How to log in. The password itself is printed once, at the first start."""
        password = self.password_file.read_text().strip() if is_new and self.password_file.exists() else ""
        secret = (
            f"password {password}  (kept in {self.password_file})" if password else f"password in {self.password_file}"
        )
        return "\n".join(
            [
                "",
                f"Tierscope is ready:  {self.url}/",
                f"  log in as admin,   {secret}",
                f"  OpenAI API:        {self.url}/v1  with the key in {self.home / 'api-key'}",
                "  Ctrl-C stops it.",
                "",
            ]
        )


def sentence(error: EnvError) -> str:
    """Without the brackets and quotes of a Python list, which environs puts around what is wrong with a value."""
    listed = list(getattr(error, "error_messages", ()))
    return str(error).replace(str(listed), " ".join(map(str, listed)))


def read() -> Environment:
    """Reads and validates every variable. Raises EnvironmentVariableError."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        from dashboard import settings, valkey
    except EnvError as error:
        raise EnvironmentVariableError(sentence(error)) from None
    except OSError as error:
        raise EnvironmentVariableError(f"TIERSCOPE_HOME cannot be used: {error.strerror or error}") from None
    if unknown := unknown_names(set(settings.env.dump())):
        raise EnvironmentVariableError(
            f"Unknown environment variable {', '.join(unknown)}; README.md lists those that there are."
        )
    return Environment(
        home=settings.TIERSCOPE_HOME,
        bind=settings.BIND,
        port=settings.PORT,
        url=settings.LOCAL_URL,
        redis_url=settings.REDIS_URL,
        is_valkey_embedded=settings.VALKEY_IS_EMBEDDED,
        engine_key=valkey.engine_key(settings.ENGINE_NAME),
        traffic_key=valkey.SAMPLE_TRAFFIC_KEY,
        traffic_lock=valkey.SAMPLE_TRAFFIC_LOCK,
    )


def unknown_names(known: set[str]) -> list[str]:
    """Variables with our prefix that no setting reads: a typing error would silently change nothing."""
    return sorted(name for name in os.environ if name.startswith("TIERSCOPE_") and name not in known)
