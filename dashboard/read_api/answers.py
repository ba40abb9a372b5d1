"""What /api/v1 answers, field by field with its unit: the document is made of these."""

from datetime import datetime

from ninja import Field, Schema


class Paged(Schema):
    next_offset: int | None = Field(description="`offset` of the next page; null on the last one.")


class SourceTold(Schema):
    name: str
    kind: str = Field(description="What its text is read as: embedded, vllm, sglang, …")
    state: str = Field(description="up, failing, stale, new, off or gone.")
    state_text: str = Field(description="The state's reason and since when, in a sentence.")
    is_enabled: bool
    interval_seconds: int = Field(description="Seconds between two readings.")
    last_ok_at: datetime | None = Field(description="When reading it last went well (UTC); null where it never did.")
    last_tried_at: datetime | None = Field(description="When it was last tried (UTC).")
    last_duration_seconds: float | None = Field(description="Seconds that the last reading took.")
    last_num_samples: int | None = Field(description="Samples that had a meaning in the last reading.")


class Sources(Paged):
    sources: list[SourceTold]


class EngineTold(Schema):
    engine: str
    model_name: str = Field(description="Empty where the engine does not tell it.")
    source: str = Field(description="The name of the source that it is read from.")
    kind: str
    state: str = Field(
        description="Of our own engines: loading, ready, stopping, failed, offline, or unknown while Valkey is away; "
        "of a watched engine its source's state, gone where the source does not tell it any more."
    )


class Engines(Paged):
    engines: list[EngineTold]


class Stretch(Schema):
    start: int = Field(alias="from", description="Unix seconds: where the first step begins.")
    end: int = Field(alias="to", description="Unix seconds, exclusive: where the last step ends.")
    step_seconds: int = Field(description="Seconds of one step.")
    resolution_seconds: int = Field(description="Seconds of the stored buckets that were read; sums are exact in each.")


class OneSeries(Schema):
    engine: str | None = Field(description="null: all engines are summed.")
    model: str | None = Field(description="null: all models are summed.")
    tier: str | None = Field(description="null: all tiers are summed; empty: the metric has none.")
    detail: str | None = Field(description="null: all details are summed; empty: the metric has none.")
    values: list[int | None] = Field(
        description="One exact integer a step, in `unit`; null where nobody looked, which is not 0. A counter's "
        "increase, a gauge's mean over the step rounded to the whole, engine by engine, then summed."
    )


class SeriesTold(Stretch):
    metric: str
    unit: str = Field(description="What the values count: tokens, bytes, microseconds, …")
    kind: str = Field(description="counter (values add up over time) or gauge (they do not).")
    detail_name: str = Field(description="What `detail` tells apart; empty where the metric has none.")
    series: list[OneSeries]


class Totals(Stretch):
    prompt_tokens: int | None = Field(
        description="Tokens. The sum of all hit_tokens and the computed ones, where an engine tells all of them; null "
        "where no engine tells what it was asked, which is not 0."
    )
    computed_tokens: int | None = Field(description="Tokens that were prefilled; null where no engine tells them.")
    hit_tokens: dict[str, int] = Field(description="Tokens by the tier that held them at the moment of the match.")
    generated_tokens: int | None = Field(description="Tokens; null where no engine tells them.")
    requests: int | None = Field(description="Finished requests; null where no engine tells them.")
    finish_reasons: dict[str, int] = Field(description="Finished requests by reason.")
    preemptions: int | None = Field(
        description="Requests that lost their blocks and were admitted again; null where no engine tells them."
    )
    hit_rate: float | None = Field(
        description="Hit tokens / prompt tokens, 0 to 1; null where nothing was asked or no engine tells what it hit."
    )
    ttft_p50: float | None = Field(description="Seconds to the first token, median, from a histogram.")
    ttft_p95: float | None = Field(description="Seconds to the first token, 95th percentile, from a histogram.")
    num_looks: int = Field(
        description="Observations of engines; 0: nobody looked, so that the zeros above say nothing."
    )


class SizeTold(Schema):
    engine: str
    tier: str
    desired_bytes: int | None = Field(description="Bytes that an admin asked for; null for a watched engine.")
    applied_bytes: int | None = Field(description="Bytes that the engine runs with.")
    used_bytes: int | None = Field(description="Bytes in use now.")
    resident_tokens: int | None = Field(description="Tokens that lie in it now.")
    capacity_tokens: int | None = Field(description="Tokens that it has room for.")
    changed_at: datetime | None = Field(description="When the setting was last changed (UTC).")
    applied_at: datetime | None = Field(description="When the engine last took a size (UTC).")
    policy: str | None = Field(description="lru, s3fifo or arc.")
    write_mode: str | None = Field(description="write_back, write_through or write_selective.")
    store_after_hits: int | None = Field(description="At which hit write_selective stores a block.")
    load: str | None = Field(description="always or when_cheaper.")
    tenant_quota: float | None = Field(description="Largest share of its blocks that one tenant may keep, 0.01 to 1.")
    reason: str = Field(description="Why applied differs from desired; empty where it does not.")


class Sizes(Paged):
    sizes: list[SizeTold]


class ChangeTold(Schema):
    at: datetime = Field(description="UTC.")
    engine: str
    tier: str
    action: str = Field(description="resize, policy, write_mode, load, store_after_hits, tenant_quota or clear.")
    old_value: str = Field(description="Bytes where the action is resize.")
    new_value: str = Field(description="Bytes where the action is resize; what was dropped where it is clear.")
    author: str | None = Field(description="A user name; null for a user that was deleted.")


class Changes(Paged):
    changes: list[ChangeTold]


class Problem(Schema):
    message: str = Field(description="One sentence: what was wrong, and what was expected.")
    type: str
    param: str | None = Field(description="The parameter that was wrong, where it was one.")
    code: str | None = Field(description="A word that stays the same when the sentence is written anew.")


class Refusal(Schema):
    error: Problem
