"""llama.cpp's server, started with `--metrics`.

From tools/server/server-context.cpp and tools/server/README.md of ggml-org/llama.cpp: `prompt_tokens` counts what was
processed, cached tokens left out: computed tokens, and no denominator. Builds with pull request 25328 also tell
`prompt_tokens_cache`; both together are then the prompt. A slot's own memory and the prompt cache in host memory are
not told apart, and there is no label for the model.
"""

from dashboard.models import Source
from dashboard.sources.rules import UNATTRIBUTED, Adapter, Metric, Rule

_CACHED = "llamacpp_prompt_tokens_cache"

LLAMACPP = Adapter(
    kind=Source.Kind.LLAMACPP,
    marks=("llamacpp_prompt_tokens",),
    computed="told",
    note="llama.cpp counts the prompt tokens that it computed; builds that count no cached ones have no hit rate.",
    model_labels=("model", "model_name"),
    rules=(
        Rule("llamacpp_prompt_tokens", Metric.COMPUTED_TOKENS),
        Rule("llamacpp_prompt_tokens", Metric.PROMPT_TOKENS, needs=(_CACHED,)),
        Rule(_CACHED, Metric.PROMPT_TOKENS),
        Rule(_CACHED, Metric.HIT_TOKENS, UNATTRIBUTED),
        Rule("llamacpp_tokens_predicted", Metric.GENERATED_TOKENS),
    ),
)
