"""Our own engines, offered to be watched: recognised by the run they name, whatever the address; counted once."""

import subprocess
import sys
from datetime import timedelta
from html import unescape
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from dashboard import valkey as names
from dashboard.models import Series, Source
from dashboard.services.recording import record
from dashboard.services.source_trial import try_source
from dashboard.services.sources import add_source
from dashboard.sources.http import ScrapeError
from tests.dashboard.told import Engine, telling
from tests.e2e.stack import ROOT, Stack

SENTENCE = (
    "This address tells of this Tierscope's own engines (local): they are recorded already and would be counted twice."
)


def text(boot_id: str, engine: Engine) -> str:
    info = f'tierscope_engine_info{{boot_id="{boot_id}",engine="{engine.name}",model_name="smol"}} 1\n'
    return info + engine.text()


@pytest.fixture
def own() -> str:
    """What /metrics says while our engine runs."""
    engine = Engine("local")
    engine.serve({"gpu": 32}, 10)
    engine.publish(timezone.now().timestamp())
    return text("boot1", engine)


@pytest.fixture
def foreign() -> str:
    """Another Tierscope whose engine has the same name."""
    engine = Engine("local")
    engine.serve({"gpu": 32}, 10)
    return text("elsewhere", engine)


@pytest.mark.usefixtures("valkey")
@pytest.mark.django_db
class TestWatching:
    def test_our_own_engines_are_refused_when_they_are_added(self, own: str) -> None:
        with pytest.raises(ValidationError) as refused:
            _add("http://other-name:9000/metrics", own)

        assert refused.value.messages == [SENTENCE]
        assert not Source.objects.exists()

    def test_another_tierscope_is_watched(self, own: str, foreign: str) -> None:
        assert _add("http://other-name:9000/metrics", foreign).pk

    def test_a_source_that_cannot_be_read_now_is_added_all_the_same(self) -> None:
        def refuse(target: object) -> str:
            raise ScrapeError("gpu-7 did not answer within 5 s.")

        now = timezone.now()
        add_source("new", "http://gpu-7/metrics", kind="auto", interval_seconds=10, now=now, fetch_text=refuse)
        assert Source.objects.get().name == "new"

    def test_what_turns_out_to_be_our_own_at_a_later_read_is_not_booked(self, own: str, foreign: str) -> None:
        source = _add("http://proxy/metrics", foreign)
        now = timezone.now()
        assert record(source.pk, now=now, connection=names.client(), fetch_text=telling(foreign))
        num_series = Series.objects.count()
        later = now + timedelta(seconds=20)
        assert not record(source.pk, now=later, connection=names.client(), fetch_text=telling(own))

        source.refresh_from_db()
        assert source.last_error == SENTENCE
        assert Series.objects.count() == num_series

    def test_one_own_engine_among_others_is_enough(self, own: str, foreign: str) -> None:
        with pytest.raises(ValidationError, match="own engines"):
            _add("http://federation/metrics", foreign + own)

    def test_our_engine_is_recognised_for_an_hour_after_its_end(self, own: str) -> None:
        Engine("local").publish(timezone.now().timestamp(), is_alive=False)
        with pytest.raises(ValidationError, match="own engines"):
            _add("http://other-name/metrics", own)

    def test_reading_it_now_says_it_too(self, own: str) -> None:
        source = Source(name="self", url="http://localhost/metrics")
        trial = try_source(source, now=timezone.now(), connection=names.client(), fetch_text=telling(own))

        assert (trial.engines, trial.problems) == ((), (SENTENCE,))

    def test_the_command_says_it_in_one_sentence(self, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dashboard.services.sources.fetch_target", telling(own))
        with pytest.raises(CommandError) as refused:
            call_command("addsource", "self", "http://localhost:8000/metrics")

        assert str(refused.value) == SENTENCE

    def test_the_admin_says_it_at_the_address(self, own: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dashboard.forms_sources.fetch_target", telling(own))
        client.force_login(User.objects.create_superuser("ada"))
        form = {"name": "self", "kind": "auto", "url": "http://localhost:8000/metrics", "interval_seconds": "10"}
        page = client.post("/admin/dashboard/source/add/", form)
        assert (page.status_code, SENTENCE in unescape(page.content.decode())) == (200, True)
        assert not Source.objects.exists()


def _add(url: str, told: str) -> Source:
    now = timezone.now()
    return add_source("new", url, kind="auto", interval_seconds=10, now=now, fetch_text=telling(told))


def test_a_running_tierscope_recognises_itself_under_every_name(scripted_stack: Stack) -> None:
    port = scripted_stack.port
    for number, host in enumerate((f"localhost:{port}", f"127.0.0.1:{port}")):
        command = [sys.executable, "manage.py", "addsource", f"self{number}", f"http://{host}/metrics"]
        done: Any = subprocess.run(
            command, cwd=ROOT, env=scripted_stack.env, capture_output=True, text=True, timeout=60
        )

        assert done.returncode != 0
        assert SENTENCE in done.stderr


def test_every_run_of_an_engine_is_named_in_metrics(scripted_stack: Stack) -> None:
    told = httpx.get(f"{scripted_stack.base_url}/metrics", timeout=20).text

    assert 'tierscope_engine_info{boot_id="' in told
    assert 'engine="local",model_name="scripted"} 1.0' in told
