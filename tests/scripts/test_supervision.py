"""supervisord's configuration from the Procfile: read back with supervisord's own parser."""

from pathlib import Path

import pytest
from supervisor.options import ServerOptions

from scripts.supervision import Program, log_path, read_programs, render, stop_seconds

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "a ;home #1 'with' 50%41"
    monkeypatch.setenv("TIERSCOPE_HOME", str(home))
    (home / "logs").mkdir(parents=True)
    (home / "run").mkdir()
    return home


def parse(text: str, folder: Path) -> ServerOptions:
    path = folder / "supervisord.conf"
    path.write_text(text)
    options = ServerOptions()
    options.realize(["--configuration", str(path)])
    return options


def test_supervisord_reads_every_program_with_its_log_and_its_patience(tmp_path: Path, home: Path) -> None:
    programs = read_programs(ROOT / "Procfile")
    options = parse(render(programs), tmp_path)
    found = {group.name: group.process_configs[0] for group in options.process_group_configs}
    assert set(found) == {program.name for program in programs}
    for program in programs:
        config = found[program.name]
        assert config.command.endswith(program.command)
        assert config.stdout_logfile == str(log_path(home, program.name))
        assert config.stopwaitsecs == program.stop_seconds
        assert config.killasgroup


def test_every_log_is_bounded(tmp_path: Path, home: Path) -> None:
    options = parse(render(read_programs(ROOT / "Procfile")), tmp_path)
    assert 0 < options.logfile_maxbytes <= 10 * 2**20
    for group in options.process_group_configs:
        config = group.process_configs[0]
        assert 0 < config.stdout_logfile_maxbytes * (1 + config.stdout_logfile_backups) <= 30 * 2**20


def test_valkey_starts_first_and_stops_last() -> None:
    programs = sorted(read_programs(ROOT / "Procfile"), key=lambda program: program.priority)
    assert [program.name for program in programs] == ["valkey", "worker", "engine", "web"]


def test_a_process_that_somebody_else_runs_is_left_out() -> None:
    programs = read_programs(ROOT / "Procfile", without=frozenset({"valkey"}))
    assert [program.name for program in programs] == ["worker", "engine", "web"]


def test_the_whole_stop_may_take_as_long_as_its_parts() -> None:
    programs = [Program("engine", "a", 1), Program("unknown", "b", 2)]
    assert stop_seconds(programs) == 40 + 10
