"""Any interleaving of submit, abort, step, resize and clear: right tokens, exact counts, no request left behind."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.request import RequestError
from tests.engine.harness import Answer, Rig, make_rig, tier_bytes
from tests.engine.mock_runner import expected_tokens
from tiers import LoadChoice, RefusedError, Tier, WriteMode

SYSTEMS = [[7] * 9, [7] * 4 + [3] * 8, [1, 2, 3, 4, 5, 6]]
TIERS_USED = st.sampled_from([Tier.GPU, Tier.CPU, Tier.DISK])


class EngineMachine(RuleBasedStateMachine):
    """Tiny tiers, so that everything runs out all the time."""

    @initialize(
        gpu=st.integers(5, 12),
        cpu=st.integers(0, 6),
        disk=st.integers(0, 6),
        mode=st.sampled_from(WriteMode),
        budget=st.sampled_from([4, 7, 32]),
        num_seqs=st.integers(1, 4),
    )
    def build(self, gpu: int, cpu: int, disk: int, mode: WriteMode, budget: int, num_seqs: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tierscope-test-"))
        self.rig: Rig = make_rig(
            gpu=gpu,
            cpu=cpu,
            disk=disk,
            path=self.path,
            mode=mode,
            max_num_seqs=num_seqs,
            max_num_batched_tokens=budget,
        )
        self.asked: list[tuple[list[int], int, Answer]] = []

    @rule(
        system=st.sampled_from(SYSTEMS),
        rest=st.lists(st.integers(0, 2), min_size=1, max_size=9),
        max_tokens=st.integers(1, 8),
        cache=st.sampled_from(["on", "on", "on", "off"]),
    )
    def submit(self, system: list[int], rest: list[int], max_tokens: int, cache: str) -> None:
        prompt = [*system, *rest]
        try:
            answer = self.rig.submit(f"r{len(self.asked)}", prompt, max_tokens, cache="off" if cache == "off" else "on")
        except RequestError:
            return
        self.asked.append((prompt, max_tokens, answer))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def continue_a_chat(self, data: st.DataObject) -> None:
        prompt, _, answer = data.draw(st.sampled_from(self.asked))
        if len(prompt) < 24 and answer.reason == "length":
            self.submit([*prompt, *answer.tokens], [5], 3, "on")

    @rule(times=st.integers(1, 6))
    def step(self, times: int) -> None:
        for _ in range(times):
            self.rig.step()

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.rig.engine.abort(f"r{data.draw(st.integers(0, len(self.asked) - 1))}")

    @rule(tier=TIERS_USED, blocks=st.integers(0, 14))
    def resize(self, tier: Tier, blocks: int) -> None:
        answer = self.rig.engine.resize(tier, tier_bytes(tier, blocks))
        self.rig.step()
        error = answer.exception(0)
        assert error is None or isinstance(error, RefusedError)

    @rule(tier=TIERS_USED)
    def clear(self, tier: Tier) -> None:
        answer = self.rig.engine.clear(tier)
        self.rig.step()
        assert answer.result(0) >= 0

    @rule(tier=TIERS_USED, mode=st.sampled_from(WriteMode))
    def configure(self, tier: Tier, mode: WriteMode) -> None:
        answer = self.rig.engine.configure(tier, write_mode=mode)
        self.rig.step()
        answer.result(0)

    @rule(tier=TIERS_USED, load=st.sampled_from(LoadChoice), seconds=st.sampled_from([0.0, 10.0]))
    def choose_loads(self, tier: Tier, load: LoadChoice, seconds: float) -> None:
        self.rig.cache.prefill_seconds = lambda position, num_tokens: seconds
        answer = self.rig.engine.configure(tier, load=load)
        self.rig.step()
        answer.result(0)

    @invariant()
    def counters_add_up(self) -> None:
        if hasattr(self, "rig"):
            self.rig.engine.snapshot().counters.check()

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        self.rig.run()
        for prompt, max_tokens, answer in self.asked:
            self._check_answer(prompt, max_tokens, answer)
        prompt_tokens = sum(answer.usage.prompt_tokens for _, _, answer in self.asked)
        counters = self.rig.engine.snapshot().counters
        assert counters.prompt_tokens == prompt_tokens
        assert sum(counters.requests.values()) == len(self.asked)
        assert self.rig.engine.snapshot().cache[Tier.GPU].pinned_blocks == 0
        self.rig.close()
        shutil.rmtree(self.path)

    def _check_answer(self, prompt: list[int], max_tokens: int, answer: Answer) -> None:
        expected = expected_tokens(prompt, max_tokens)
        assert answer.reason in {"length", "abort", "error"}
        assert answer.reason != "error" or "gpu tier" in (answer.error or "")
        assert answer.tokens == expected[: len(answer.tokens)]
        assert answer.reason != "length" or answer.tokens == expected
        usage = answer.usage
        assert usage.prompt_tokens == sum(usage.hit_tokens.values()) + usage.computed_tokens
        assert usage.prompt_tokens in {0, len(prompt)}
        assert sum(tokens for _, tokens in usage.prompt_tiers) == usage.prompt_tokens


EngineMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestEngineInterleavings = EngineMachine.TestCase
