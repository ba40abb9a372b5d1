"""Fleets that come and go by themselves: by files in both formats, by a real HTTP server, and what odd lists do."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard import valkey as names
from dashboard.models import Discovery, Mapping, Series, Source
from dashboard.selectors.source_states import describe, state_of
from dashboard.services.discovery import Changed, due_ids, refresh
from dashboard.services.recording import due_source_ids, record_many
from dashboard.services.sources import target_of
from dashboard.sources import discovery as lists
from dashboard.sources.discovery import DiscoveryError, Found, found, read_files, source_name
from dashboard.tasks import discover_due
from tests.dashboard.serving import Answer, serving

pytestmark = pytest.mark.django_db

PAGE = "/admin/dashboard/discovery/"


def listing(*targets: str, **labels: str) -> str:
    return json.dumps([{"targets": list(targets), "labels": labels}])


def discovery(location: Path | str, **told: object) -> Discovery:
    kind = "http" if str(location).startswith("http") else "file"
    return Discovery.objects.create(**{"name": "fleet", "kind": kind, "location": str(location), **told})


def refreshed(found_by: Discovery) -> Changed | None:
    now = timezone.now()
    Discovery.objects.filter(pk=found_by.pk).update(due_at=now)
    return refresh(found_by.pk, now=now)


def listed() -> list[str]:
    return list(Source.objects.filter(gone_at=None).order_by("url").values_list("url", flat=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("targets.json", listing("gpu-1:8000", "gpu-2:8000", __metrics_path__="/m", __scheme__="https")),
        (
            "targets.yml",
            "- targets: ['gpu-1:8000', gpu-2:8000]\n  labels: {__metrics_path__: /m, __scheme__: https, job: vllm}\n",
        ),
    ],
)
def test_a_file_of_targets_becomes_sources(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert refreshed(discovery(file, source_kind="vllm", interval_seconds=30)) == Changed(come=2)
    assert listed() == ["https://gpu-1:8000/m", "https://gpu-2:8000/m"]
    source = Source.objects.get(name="fleet-gpu-1-8000")
    assert (source.kind, source.interval_seconds, state_of(source, timezone.now())) == ("vllm", 30, "new")


def test_a_star_reads_every_file_and_a_target_that_is_in_two_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(listing("gpu-1:8000"))
    (tmp_path / "b.json").write_text(listing("gpu-1:8000", "gpu-2:8000"))
    refreshed(discovery(tmp_path / "*.json"))
    assert listed() == ["http://gpu-1:8000/metrics", "http://gpu-2:8000/metrics"]


def test_a_real_server_lists_targets_and_gets_the_lists_token() -> None:
    with serving(lambda path: Answer(listing("gpu-1:8000", instance="left one"))) as served:
        fleet = discovery(f"{served.url}/sd", token="list-token")
        assert refreshed(fleet) == Changed(come=1)
    assert served.asked[0][1]["Authorization"] == "Bearer list-token"
    source = Source.objects.get()
    assert source.name == "fleet-left-one"
    assert "Authorization" not in target_of(source).headers  # the list chooses who its targets are


def test_a_files_token_is_the_engines(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(listing("gpu-1:8000"))
    refreshed(discovery(file, token="engines-token"))
    assert target_of(Source.objects.get()).headers["Authorization"] == "Bearer engines-token"


def test_five_hundred_come_go_and_come_back_and_keep_their_series(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    everybody = [f"10.0.{number // 256}.{number % 256}:8000" for number in range(500)]
    file.write_text(listing(*everybody))
    fleet = discovery(file)
    assert refreshed(fleet) == Changed(come=500)
    assert len(due_source_ids(timezone.now())) == 500
    Series.objects.create(source=Source.objects.get(url=f"http://{everybody[0]}/metrics"), engine="e", metric="scrapes")

    file.write_text(listing(*everybody[100:]))
    assert refreshed(fleet) == Changed(gone=100)
    assert len(due_source_ids(timezone.now())) == 400
    gone = Source.objects.get(url=f"http://{everybody[0]}/metrics")
    assert state_of(gone, timezone.now()) == "gone"
    assert describe(gone, timezone.now()).startswith("Not listed by its discovery since")

    file.write_text(listing(*everybody))
    assert refreshed(fleet) == Changed(back=100)
    assert refreshed(fleet) == Changed()
    assert Source.objects.count() == 500
    assert Series.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("not json", "targets.json is no JSON: see its line 1."),
        ('[\n{"targets": ["gpu-1:8000",]}\n]', "targets.json is no JSON: see its line 2."),
        ('{"targets": []}', "is no list of groups"),
        ("[1]", "Group 1 is none"),
        ('[{"targets": "gpu-1"}]', "Group 1 is none"),
        ('[{"targets": ["http://secret@gpu-1/"]}]', "Group 1 has a target that is no host:port."),
        ('[{"targets": [7]}]', "Group 1 has a target that is no host:port."),
        ('[{"targets": ["a:1"], "labels": {"__scheme__": "file"}}]', "__scheme__ is http or https"),
        ('[{"targets": ["a:1"], "labels": {"__metrics_path__": "metrics"}}]', "starts with a slash"),
        (
            json.dumps([{"targets": ["a:1"], "labels": {"__metrics_path__": "/" + "x" * 300}}]),
            "more than 200 characters",
        ),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_list_that_cannot_be_used_says_so_and_changes_nothing(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "targets.json"
    file.write_text(listing("gpu-1:8000"))
    fleet = discovery(file)
    refreshed(fleet)
    file.write_text(text)
    assert refreshed(fleet) is None
    fleet.refresh_from_db()
    assert sentence in fleet.last_error
    assert "secret" not in fleet.last_error
    assert listed() == ["http://gpu-1:8000/metrics"]


def test_a_list_that_is_away_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(listing("gpu-1:8000"))
    fleet = discovery(file)
    refreshed(fleet)
    file.unlink()
    assert refreshed(fleet) is None
    assert listed() == ["http://gpu-1:8000/metrics"]
    fleet.refresh_from_db()
    assert fleet.last_error == "targets.json cannot be read (No such file or directory)."


def test_an_empty_list_is_a_list(tmp_path: Path) -> None:
    file = tmp_path / "targets.yml"
    file.write_text("- targets: [gpu-1]\n")
    fleet = discovery(file)
    refreshed(fleet)
    file.write_text("")
    assert refreshed(fleet) == Changed(gone=1)


def test_more_targets_than_are_watched_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MAX_TARGETS", 3)
    with pytest.raises(DiscoveryError, match="more than 3 targets"):
        found(listing("a", "b", "c", "d"))


def test_a_file_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MAX_FILE_BYTES", 2**20)
    file = tmp_path / "targets.json"
    file.write_text("[" + " " * 2**20 + "]")
    with pytest.raises(DiscoveryError, match="more than 1 MiB"):
        read_files(str(file))


def test_yaml_makes_no_objects() -> None:
    with pytest.raises(DiscoveryError, match="Group 1 is none"):
        found("!!python/object/apply:os.system ['true']", is_json=False)


def test_a_parameter_is_asked_for() -> None:
    (target,) = found(listing("gpu-1:8080", __param_model="qwen 3"))
    assert target.url == "http://gpu-1:8080/metrics?model=qwen+3"


def test_names_suit_pages_and_stay_apart(tmp_path: Path) -> None:
    assert source_name("fleet", Found("http://[::1]:8000/metrics", "[::1]:8000"), set()) == "fleet--1-8000"
    assert len(source_name("fleet", Found("http://a/metrics", "a" * 100), set())) == 64
    file = tmp_path / "targets.json"
    file.write_text(json.dumps([{"targets": ["a:1", "b:1"], "labels": {"instance": "same"}}]))
    refreshed(discovery(file))
    first, second = Source.objects.order_by("name").values_list("name", flat=True)
    assert first == "fleet-same"
    assert second.startswith("fleet-same-")


def test_what_an_admin_switched_off_stays_off(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(listing("gpu-1:8000"))
    fleet = discovery(file)
    refreshed(fleet)
    Source.objects.update(is_enabled=False)
    refreshed(fleet)
    assert due_source_ids(timezone.now()) == []


def test_a_list_is_read_by_one_worker_when_its_time_has_come(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(listing("gpu-1:8000"))
    fleet = discovery(file, refresh_seconds=60)
    now = timezone.now()
    assert refresh(fleet.pk, now=now) == Changed(come=1)
    assert refresh(fleet.pk, now=now) is None
    assert due_ids(now + timedelta(seconds=59)) == []
    assert due_ids(now + timedelta(seconds=60)) == [fleet.pk]


def test_a_clock_that_was_set_back_does_not_keep_a_list_from_being_read(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(listing("gpu-1:8000"))
    fleet = discovery(file, refresh_seconds=60)
    now = timezone.now()
    refresh(fleet.pk, now=now)
    assert due_ids(now - timedelta(hours=3)) == [fleet.pk]
    assert refresh(fleet.pk, now=now - timedelta(hours=3)) == Changed()
    assert due_ids(now - timedelta(hours=3)) == []


@pytest.mark.usefixtures("valkey")
def test_a_fleet_that_was_discovered_is_read_and_a_list_may_be_switched_off(tmp_path: Path) -> None:
    with serving(lambda path: Answer('vllm:prefix_cache_queries_total{engine="0",model_name="m"} 5\n')) as served:
        file = tmp_path / "targets.json"
        file.write_text(listing(served.url.removeprefix("http://")))
        fleet = discovery(file)
        assert discover_due() == 1
        ids = due_source_ids(timezone.now())
        assert record_many(ids, clock=timezone.now, connection=names.client()) == ids
    Discovery.objects.update(is_enabled=False)
    assert discover_due() == 0
    assert fleet.sources.get().runs.exists()


class TestAdmin:
    @pytest.fixture
    def admin(self, client: Client) -> Client:
        client.force_login(User.objects.create_superuser("ada"))
        return client

    def typed(self, **told: str) -> dict[str, str]:
        form = {"name": "fleet", "kind": "file", "location": "/etc/targets/*.json", "source_kind": "auto"}
        return {**form, "interval_seconds": "10", "refresh_seconds": "60", "is_enabled": "on", **told}

    def test_a_list_is_typed_and_shown_with_how_it_goes(self, admin: Client, tmp_path: Path) -> None:
        file = tmp_path / "targets.json"
        file.write_text(listing("gpu-1:8000", "gpu-2:8000"))
        admin.post(f"{PAGE}add/", self.typed(location=str(file)))
        fleet = Discovery.objects.get()
        assert "Not tried yet" in admin.get(PAGE).content.decode()
        refreshed(fleet)
        page = admin.get(PAGE).content.decode()
        assert "Last read" in page
        assert '<td class="field-targets">2</td>' in page
        assert admin.get(f"{PAGE}{fleet.pk}/change/").status_code == 200
        assert (
            "fleet-gpu-1-8000"
            in admin.get(f"/admin/dashboard/source/?discovery__id__exact={fleet.pk}").content.decode()
        )

    @pytest.mark.parametrize(
        ("told", "sentence"),
        [
            ({"location": "targets.json"}, "Enter an absolute path"),
            ({"location": "/etc/passwd"}, "Enter an absolute path"),
            ({"kind": "http"}, "Enter an address"),
            ({"kind": "http", "location": "http://me:secret@sd/"}, "Leave the user name and password out"),
            ({"source_kind": "mapping"}, "Choose a mapping"),
            ({"source_kind": "embedded"}, "Select a valid choice"),
            ({"refresh_seconds": "1"}, "greater than or equal to 5"),
        ],
    )
    def test_what_cannot_be_a_list_is_refused(self, admin: Client, told: dict[str, str], sentence: str) -> None:
        assert sentence in admin.post(f"{PAGE}add/", self.typed(**told)).content.decode()
        assert not Discovery.objects.exists()

    def test_a_stored_token_never_goes_to_the_engines_of_another_list(self, admin: Client) -> None:
        admin.post(f"{PAGE}add/", self.typed(typed_token="secret-token"))
        fleet = Discovery.objects.get()
        other = self.typed(location="/tmp/others.json")
        assert "The server changed: type its token" in admin.post(f"{PAGE}{fleet.pk}/change/", other).content.decode()
        fleet.refresh_from_db()
        assert fleet.location == "/etc/targets/*.json"

    def test_a_discovery_may_read_its_engines_by_a_mapping(self, admin: Client) -> None:
        mapping = Mapping.objects.create(name="acme")
        admin.post(f"{PAGE}add/", self.typed(source_kind="mapping", mapping=str(mapping.pk)))
        assert Discovery.objects.get().mapping == mapping

    def test_sources_outlive_the_discovery_that_found_them(self, admin: Client, tmp_path: Path) -> None:
        file = tmp_path / "targets.json"
        file.write_text(listing("gpu-1:8000"))
        fleet = discovery(file)
        refreshed(fleet)
        admin.post(f"{PAGE}{fleet.pk}/delete/", {"post": "yes"})
        assert not Discovery.objects.exists()
        assert Source.objects.get().discovery is None
