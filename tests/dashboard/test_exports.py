"""A chart's numbers as CSV and Parquet: the rows of the chart, exact where it is rounded, for the same address."""

import csv
import io
import time
from collections.abc import Iterator
from typing import Any

import pytest
from arro3.core import DataType
from arro3.io import read_parquet
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.exports.table import Column, Kind, Table, as_csv, as_parquet
from dashboard.models import Prices
from dashboard.services.api_keys import create_read_token
from dashboard.views.chart_files import CHARTS
from tests.dashboard.live_engine import publish
from tests.dashboard.seeded import SeededEngine, lively


@pytest.fixture
def browser(db: None, valkey: str, client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


@pytest.fixture
def seeded(db: None) -> SeededEngine:
    now = time.time()
    engine = lively(now, seconds=600, gap=(300, 200))
    engine.store(now)
    return engine


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def parquet_of(content: bytes) -> Any:
    return read_parquet(io.BytesIO(content)).read_all()


def column_sums(rows: list[dict[str, str]]) -> dict[str, float]:
    return {name: sum(float(row[name]) for row in rows if row[name]) for name in rows[0] if name != "start"}


def period() -> str:
    """Two addresses that are asked one after the other mean the same steps."""
    end = int(time.time()) // 10 * 10
    return f"start={end - 900}&end={end}"


def test_the_sums_of_the_csv_are_those_of_the_chart_and_the_tiles(browser: Client, seeded: SeededEngine) -> None:
    asked = period()
    figure = browser.get(f"/api/charts/tokens.json?{asked}").json()["figure"]
    drawn = {trace["name"]: sum(10 * y for y in trace["y"] if y is not None) for trace in figure["data"]}
    told = column_sums(rows_of(browser.get(f"/api/charts/tokens.csv?{asked}").content))
    assert {name: round(total) for name, total in drawn.items()} == {
        "gpu": told["gpu_hit_tokens"],
        "cpu": told["cpu_hit_tokens"],
        "disk": told["disk_hit_tokens"],
        "computed": told["computed_tokens"],
    }
    tiles = browser.get(f"/api/tiles.json?{asked}").json()
    assert tiles["prompt_tokens"] == told["prompt_tokens"] == sum(round(total) for total in drawn.values())


def test_the_parquet_has_the_csv_s_rows_with_their_types(browser: Client, seeded: SeededEngine) -> None:
    asked = period()
    rows = rows_of(browser.get(f"/api/charts/tokens.csv?{asked}").content)
    table = parquet_of(browser.get(f"/api/charts/tokens.parquet?{asked}").content)
    assert table.column_names == list(rows[0])
    whole = DataType.int64()
    assert [field.type for field in table.schema][:3] == [DataType.timestamp("ms", tz="UTC"), whole, whole]
    told = table.column("prompt_tokens").to_pylist()
    assert ["" if value is None else str(value) for value in told] == [row["prompt_tokens"] for row in rows]
    assert [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in table.column("start").to_pylist()] == [
        row["start"] for row in rows
    ]


def test_what_nobody_observed_is_an_empty_cell(browser: Client, seeded: SeededEngine) -> None:
    rows = rows_of(browser.get(f"/api/charts/tokens.csv?{period()}").content)
    unobserved = [row for row in rows if not row["prompt_tokens"]]
    assert 10 <= len(unobserved) < len(rows)
    assert {row["gpu_hit_tokens"] for row in unobserved} == {""}


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_has_files_of_as_many_rows(browser: Client, name: str) -> None:
    publish("local", gpu={}, cpu={}, disk={})
    Prices.objects.create(pk=1, gpu_gib_month=500, cpu_gib_month=10, disk_gib_month=1)
    rows = rows_of(browser.get(f"/api/charts/{name}.csv?{period()}").content)
    answer = browser.get(f"/api/charts/{name}.parquet?{period()}")
    assert len(rows) == parquet_of(answer.content).num_rows > 0
    assert answer["Content-Type"] == "application/vnd.apache.parquet"
    assert answer["Content-Disposition"].startswith(f'attachment; filename="tierscope-{name}-20')


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_has_a_file_for_an_empty_store(browser: Client, name: str) -> None:
    header, *rows = browser.get(f"/api/charts/{name}.csv?range=30d").content.decode().splitlines()
    assert header
    assert {cell for row in rows for cell in row.split(",")[2:]} <= {""}  # after the step's start and length
    assert parquet_of(browser.get(f"/api/charts/{name}.parquet?range=30d").content).num_rows == len(rows)


def test_a_filter_of_the_page_is_the_file_s(browser: Client, seeded: SeededEngine) -> None:
    rows = rows_of(browser.get(f"/api/charts/tokens.csv?{period()}&engine=other").content)
    assert not any(row["prompt_tokens"] for row in rows)


def test_wrong_addresses_are_one_sentence_and_strangers_log_in(browser: Client) -> None:
    for address, sentence in (
        ("pie.csv", "There is no chart “pie”"),
        ("tokens.xlsx", "There is no kind of file “xlsx”; there are csv, parquet."),
        ("tokens.csv?range=2h", "range is “2h”"),
    ):
        answer = browser.get(f"/api/charts/{address}")
        assert (answer.status_code, answer.json()["error"].startswith(sentence)) == (400, True)
    assert browser.post("/api/charts/tokens.csv").status_code == 405
    assert Client().get("/api/charts/tokens.csv")["Location"].startswith("/login/?next=")


@pytest.mark.usefixtures("seeded", "valkey")
def test_a_program_reads_the_same_file_with_its_token(browser: Client) -> None:
    headers = {"Authorization": f"Bearer {create_read_token('notebook')[1]}"}
    asked = period()
    answer = Client().get(
        f"/api/v1/charts/tokens.csv?{asked.replace('start', 'from').replace('end', 'to')}", headers=headers
    )
    assert answer.content == browser.get(f"/api/charts/tokens.csv?{asked}").content
    refused = Client().get("/api/v1/charts/tokens.csv?engien=x", headers=headers)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "engien")
    assert Client().get("/api/v1/charts/pie.csv", headers=headers).json()["error"]["message"].startswith("There is no")


_INTEGERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3)
_NUMBERS = st.lists(st.none() | st.floats(allow_nan=False), min_size=3, max_size=3)


@given(_INTEGERS, _NUMBERS)
def test_every_number_reads_back_as_itself(integers: list[int | None], numbers: list[float | None]) -> None:
    table = Table([Column("i", Kind.INTEGER, integers), Column("n", Kind.NUMBER, numbers)])
    read = parquet_of(as_parquet(table))
    assert (read.column("i").to_pylist(), read.column("n").to_pylist()) == (integers, numbers)
    rows = rows_of(as_csv(table))
    assert list(_read(rows, "i", int)) == integers
    assert list(_read(rows, "n", float)) == numbers


def _read(rows: list[dict[str, str]], name: str, read: Any) -> Iterator[Any]:
    return (read(row[name]) if row[name] else None for row in rows)


def test_no_text_is_a_formula_to_a_spreadsheet() -> None:
    table = Table([Column("=1+2_tokens", Kind.TEXT, ["@a", "gpu", None]), Column("n", Kind.INTEGER, [-1, 2, 3])])
    assert as_csv(table).decode().splitlines() == ["'=1+2_tokens,n", "'@a,-1", "gpu,2", ",3"]


def test_columns_of_different_lengths_are_no_table() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Table([Column("a", Kind.INTEGER, [1]), Column("b", Kind.INTEGER, [])])
