"""Which tests run in one process, and which come first, where several processes run them (pytest-xdist).

A file stays together, for its tests share what it starts. So do files that share more: the stack with a scripted engine
is started once instead of once a process, and the one whose pages Chromium looks at, too; the bundled model is loaded
once, 4.5 s of CPU, and the Prometheus and the VictoriaMetrics with a history are filled once.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_SCRIPTED = ("test_api_openai", "test_api_refusals", "test_api_tenants", "test_middleware", "test_own_engines")
_PAST = ("test_backfill", "test_live_prometheus", "test_prometheus_changes", "test_prometheus_likes")
_MODEL = (
    "chat_prompt",
    "chat_template",
    "identical_text",
    "model_matches_transformers",
    "tokenizer",
    "trace_tokenizer",
)
_GROUPS = {f"tests/dashboard/{name}.py": "scripted" for name in _SCRIPTED}
_GROUPS |= {f"tests/dashboard/{name}.py": "past" for name in _PAST}
_GROUPS |= {f"tests/engine/test_{name}.py": "model" for name in _MODEL}
# Minutes each: one that came last would be waited for alone.
_LONGEST = (
    "tests/browser/",
    "tests/e2e/test_real_model.py",
    "tests/scripts/test_stopping.py",
    "tests/e2e/",
    "tests/dashboard/test_faults_of_processes.py",
    "tests/scripts/",
    "tests/tiers/test_against_oracle.py",
)


def longest_first(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    """How early it is begun, 0 first."""
    return next((place for place, start in enumerate(_LONGEST) if nodeid.startswith(start)), len(_LONGEST))


class ByWhatIsShared(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist tells no types
    """A process gets a whole group, in the order in which the tests are collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False  # it would begin with the group of most tests, not the longest one
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "browser" if file.startswith("tests/browser/") else _GROUPS.get(file, file)
