"""The promises about the shape of the code: arrows, what the web process loads, how large files are."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("tiers", "engine", "dashboard")
MAX_LINES = 350
MEDIAN_LINES = 100


def modules(*packages: str) -> list[Path]:
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return sorted(path for path in paths if "migrations" not in path.parts)


def imported(path: Path) -> Iterator[str]:
    """Top-level names of everything a module imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_imports_run_one_way() -> None:
    result = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_only_one_module_of_the_dashboard_imports_the_engine_or_the_tiers() -> None:
    """Besides those that answer what-if questions (the command, from a file, and two modules, from what was counted),
    those that replay (a trace, and policies on a sample of one), and the one that reads texts for them.
    """
    importers = {path.name for path in modules("dashboard") if {"engine", "tiers"} & set(imported(path))}
    assert importers == {
        *("engine_host.py", "whatif.py", "predicting.py", "advising.py"),
        *("replay_run.py", "policy_run.py", "trace_texts.py"),
    }


def test_the_tiers_need_little() -> None:
    # psutil tells what the machine has; redis is for the connections of the remote tier alone, numba for the tables.
    allowed = set(sys.stdlib_module_names) | {"tiers", "numpy", "torch", "xxhash", "psutil"}
    special = {
        name: {"numba", "llvmlite"} for name in ("ahead.py", "compiled.py", "counter.py", "past_cache.py", "xxh3.py")
    }
    special["remote_wire.py"] = {"redis"}
    for path in modules("tiers"):
        foreign = set(imported(path)) - allowed - special.get(path.name, set())
        assert not foreign, f"{path.relative_to(ROOT)} imports {', '.join(sorted(foreign))}"


def test_the_web_process_never_loads_torch() -> None:
    # Views are loaded with the first request: resolving the URLs loads them now. Of tiers it needs plain integers.
    code = (
        "import sys, dashboard.asgi; from django.urls import get_resolver; get_resolver().url_patterns\n"
        "print(sorted({'torch', 'engine', 'tiers.cache', 'transformers', 'numba', 'numpy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_no_module_is_long() -> None:
    long = {str(path.relative_to(ROOT)): lines(path) for path in modules(*PACKAGES) if lines(path) > MAX_LINES}
    assert not long


def test_most_modules_are_short(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {package: [lines(path) for path in modules(package) if lines(path)] for package in PACKAGES}
    everything = [size for package in sizes.values() for size in package]
    with capsys.disabled():
        for package, found in sizes.items():
            if found:
                print(f"\n{package}: {len(found)} files, {sum(found)} lines, median {median(found):.0f}", end="")
    assert not everything or median(everything) < MEDIAN_LINES


def test_every_module_says_what_it_does() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules(*PACKAGES)
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent, f"no docstring in {silent}"
