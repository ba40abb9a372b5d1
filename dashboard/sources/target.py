"""What has to be known to read one watched engine. Knows neither HTTP nor the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.sources.rules import Adapter


@dataclass(frozen=True)
class Tls:
    """`ca`: the authorities to trust instead of the system's, as PEM. Unchecked means that anybody may answer.

    `cert` and `key`, PEM as well, say who we are; `server_name` is expected in the other's certificate instead of the
    address' host.
    """

    ca: str = ""
    is_unchecked: bool = False
    cert: str = ""
    key: str = field(default="", repr=False)
    server_name: str = ""


@dataclass(frozen=True)
class Allowed:
    """What lets us in: headers to send, secrets among them and never shown, and whom to trust."""

    headers: Mapping[str, str] = field(repr=False)
    tls: Tls


@dataclass(frozen=True)
class Target:
    """An address and how its text is read. `typed` is the table of a mapping, for that kind only.

    With a `selector` the address is a Prometheus', and the engine's are those of its series; `every_seconds` is how
    often it is asked, 0 where that does not matter.
    """

    url: str
    kind: str
    typed: Adapter | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets: never shown
    tls: Tls = Tls()
    selector: str = ""
    every_seconds: int = 0

    @property
    def allowed(self) -> Allowed:
        return Allowed(self.headers, self.tls)
