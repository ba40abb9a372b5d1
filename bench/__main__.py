"""`python -m bench [NAME…] [--json]`: runs the benchmarks in this folder, each a module with a `run()`.

A table by default; with `--json` one object a line (bench/result.py). Exit status 1 if a bar was missed or a benchmark
failed.
"""

import argparse
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterator

import bench
from bench.result import Result
from dashboard.spinning import spin_briefly

NOT_BENCHMARKS = {"__main__", "result"}


def names() -> list[str]:
    """Modules of this folder that are benchmarks; a leading underscore marks a helper."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(name for name in found if name not in NOT_BENCHMARKS and not name.startswith("_"))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default all: {', '.join(names())}")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(names())):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are: {', '.join(names())}")
    spin_briefly()  # as the product's processes do
    failed = False
    for name in options.names or names():
        try:
            for result in _run(name):
                print(result.as_json() if options.json else _row(result), flush=True)
                failed |= result.ok is False
        except Exception:
            failed = True
            print(f"{name}: failed", file=sys.stderr)
            traceback.print_exc()
    return int(failed)


def _run(name: str) -> Iterator[Result]:
    yield from importlib.import_module(f"bench.{name}").run()


def _row(result: Result) -> str:
    verdict = {True: "ok", False: "MISSED", None: "no reference"}[result.ok]
    reference = "—" if result.reference is None else f"{result.reference:.4g}"
    ratio = "—" if result.ratio is None else f"{result.ratio:.3f}"
    return (
        f"{result.name:<44} {result.ours:>10.4g} {reference:>10} {result.unit:<10} "
        f"ratio {ratio:>8}  bar {result.bar:<8} {verdict:<12} vs {result.reference_name}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
