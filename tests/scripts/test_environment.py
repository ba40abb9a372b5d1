"""What the launcher prints and passes on."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from environs import EnvValidationError

from scripts.environment import Environment, sentence, unknown_names

ROOT = Path(__file__).parents[2]


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    (tmp_path / "admin-password").write_text("s3cret\n")
    return Environment(
        home=tmp_path,
        bind="127.0.0.1",
        port=8000,
        url="http://127.0.0.1:8000",
        redis_url="unix:///nowhere",
        is_valkey_embedded=True,
        engine_key="engine",
        traffic_key="traffic",
        traffic_lock="lock",
    )


def test_the_password_is_printed_at_the_first_start_only(env: Environment) -> None:
    assert "s3cret" in env.welcome(is_new=True)
    assert "s3cret" not in env.welcome(is_new=False)


def test_every_start_says_where_to_go_and_where_the_secrets_are(env: Environment) -> None:
    text = env.welcome(is_new=False)
    assert "http://127.0.0.1:8000/" in text
    assert "log in as admin" in text
    assert str(env.home / "admin-password") in text
    assert str(env.home / "api-key") in text


def test_python_in_the_procfile_is_the_one_that_runs_the_launcher(env: Environment) -> None:
    first = env.child_variables["PATH"].split(os.pathsep)[0]
    assert (Path(first) / "python").exists()


def test_only_our_own_prefix_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERSCOPE_TYPO", "1")
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    assert unknown_names({"TIERSCOPE_HOME"}) == ["TIERSCOPE_TYPO"]


def test_a_valkey_of_somebody_else_is_not_started(env: Environment) -> None:
    assert replace(env, is_valkey_embedded=False).outside_processes == {"valkey"}
    assert env.outside_processes == frozenset()


def test_what_is_wrong_with_a_value_is_a_sentence_and_no_list_of_python() -> None:
    wrong = ["Must be one of: 8, 16, 32."]
    error = EnvValidationError(f'Environment variable "TIERSCOPE_BLOCK_SIZE" invalid: {wrong}', wrong)
    assert sentence(error) == 'Environment variable "TIERSCOPE_BLOCK_SIZE" invalid: Must be one of: 8, 16, 32.'


def test_a_command_ends_with_that_sentence_too() -> None:
    env = os.environ | {"TIERSCOPE_MAX_TENANTS": "many"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr == 'Environment variable "TIERSCOPE_MAX_TENANTS" invalid: Not a valid integer.\n'
