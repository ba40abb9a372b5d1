"""docker-compose.yml: valid by the specification's schema, and the same commands as `make run` starts."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.sizes import parse_size

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {name.strip(): command.strip() for name, command in pairs}


def test_the_compose_file_is_valid_by_the_specifications_schema() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]
    result = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("service", ["web", "engine", "worker"])
def test_a_service_runs_the_procfiles_command(service: str) -> None:
    # Compose expands $NAME itself when it reads the file; $$ hands a plain $ to the container.
    command = COMPOSE["services"][service]["command"]
    assert shlex.split(command.replace("$$", "$")) == shlex.split(procfile()[service])


def test_every_process_of_the_procfile_is_a_service() -> None:
    assert set(procfile()) <= set(COMPOSE["services"])


def test_every_mounted_file_is_in_the_project() -> None:
    mounts = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", [])]
    for mount in mounts:
        host_path = mount.split(":")[0]
        assert not host_path.startswith("./") or (ROOT / host_path).exists(), f"{host_path} is mounted but missing"


def test_every_variable_is_one_that_the_readme_explains() -> None:
    explained = set(re.findall(r"`((?:TIERSCOPE_)?[A-Z_]+)`", (ROOT / "README.md").read_text()))
    assert set(COMPOSE["x-tierscope"]["environment"]) <= explained


def test_the_remote_tier_has_a_server_of_its_own_that_evicts_nothing_and_is_larger() -> None:
    environment, command = COMPOSE["x-tierscope"]["environment"], COMPOSE["services"]["remote"]["command"]
    assert environment["TIERSCOPE_REMOTE_URL"] == "redis://remote:6379/0"
    assert environment["REDIS_URL"] != environment["TIERSCOPE_REMOTE_URL"]
    assert "--maxmemory-policy noeviction" in command
    server, tier = (_default(text) for text in (command, environment["TIERSCOPE_REMOTE_BYTES"]))
    assert parse_size(tier) <= 0.9 * parse_size(server.replace("mb", " MiB"))


def _default(text: str) -> str:
    """What Compose puts where `${NAME:-default}` is and nobody says otherwise."""
    [default] = re.findall(r":-([^}]*)}", text)
    return str(default)


def test_no_port_is_published_beyond_loopback() -> None:
    for name, service in COMPOSE["services"].items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} publishes {port}"
