"""After the warm-up nothing is left that would be compiled while a request waits."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = """
import tiers
from tiers.books.compiled import ENTRIES
tiers.warm_up()
OFFLINE = ("tiers.whatif.stack", "access")
[getattr(tiers, name) for name in tiers.__all__]
names = [(entry.__module__, entry.__name__) for entry in ENTRIES if not entry.signatures]
print([each for each in names if not set(OFFLINE) & set(each)])
"""


def test_everything_that_a_step_calls_is_compiled_before_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
