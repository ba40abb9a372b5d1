"""`manage.py whatif FILE --blocks 1000,10000,inf`: the hit rates that other cache sizes would have had on a trace.

With `--tiers gpu=…,cpu=…` the split by tier of a hierarchy, with `--sample-rate 0.01` what a sample says beside the
exact answer, with `--policy s3fifo` what that policy does. Sizes are in blocks of the trace. Stores nothing. Which
traces are read, and what each can tell, is in docs/traces.md.
"""

import argparse
import json
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dashboard.trace_folder import folder
from dashboard.trace_texts import load_tokenizer
from tiers import TIERS, Policy, Tier, WriteMode
from tiers.traces import KINDS, CountFaults, Faults, RefuseFaults, TraceError, open_trace
from tiers.whatif import Accesses, HitCurve, TouchOrder, stack_positions, traced_accesses
from tiers.whatif.miniature import miniature_rates
from tiers.whatif.shards_trace import sampled_hits, trace_stack

DEFAULT_BLOCKS = "1000,10000,30000,50000,100000,inf"


class Command(BaseCommand):
    help = "Prints the hit rates that one LRU cache, or a hierarchy of tiers, of other sizes would have had on a trace."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A trace: a file, a folder or a pattern, packed or not.")
        parser.add_argument("--form", choices=["auto", *KINDS], default="auto", help="Otherwise told by its lines.")
        parser.add_argument("--tokenizer", type=Path, help="For texts: tokenizer.json, a folder or a .gguf.")
        parser.add_argument("--block-tokens", type=int, default=settings.BLOCK_SIZE, help="For texts: tokens a block.")
        parser.add_argument("--tenant", help="Only this one's requests are counted; all take their room.")
        parser.add_argument("--model", help="Only this one's requests are counted; all take their room.")
        parser.add_argument("--keep-going", action="store_true", help="Leave wrong lines out, and tell them.")
        parser.add_argument(
            "--blocks", type=_blocks, default=_blocks(DEFAULT_BLOCKS), help="Capacities, “inf” for all."
        )
        parser.add_argument("--touch", choices=[order.value for order in TouchOrder], default=TouchOrder.TAIL.value)
        parser.add_argument("--tiers", type=_tiers, help="gpu=BLOCKS,cpu=BLOCKS,…: the split by tier.")
        parser.add_argument("--mode", choices=["write_back", "write_through"], default="write_back")
        parser.add_argument("--sample-rate", type=float, help="0.01: also from every hundredth of the deeper blocks.")
        parser.add_argument("--policy", choices=[policy.value for policy in Policy], help="Also another than LRU.")
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            faults = CountFaults() if options["keep_going"] else RefuseFaults()
            told = _answer(_accesses(options, faults), options) | _wrong_lines(faults)
        except OSError as error:
            name = error.filename or options["file"]
            raise CommandError(f"{name} cannot be read: {error.strerror or error}.") from None
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(told) if options["json"] else _table(told))


def _wrong_lines(faults: Faults) -> dict[str, Any]:
    if not isinstance(faults, CountFaults):
        return {}
    return {"wrong_lines": {"count": faults.count, "first": faults.sentences}}


def _accesses(options: dict[str, Any], faults: Faults) -> Accesses:
    """Raises TraceError, or OSError where something cannot be read."""
    path = options["file"]
    with open_trace(
        path,
        kind=options["form"],
        load_tokenizer=partial(load_tokenizer, options["tokenizer"]),
        block_tokens=options["block_tokens"],
        faults=faults,
        scratch=folder(),
    ) as trace:
        traced = traced_accesses(trace)
    if not traced.accesses.num_requests:
        raise TraceError(f"{path} has no requests.")
    return traced.of(tenant=options["tenant"], model=options["model"])


def _answer(accesses: Accesses, options: dict[str, Any]) -> dict[str, Any]:
    positions = stack_positions(accesses, TouchOrder(options["touch"]))
    blocks, tokens = HitCurve(), HitCurve()
    blocks.add(positions, accesses.is_asked.astype(np.int64))
    tokens.add(positions, accesses.num_tokens)
    tokens.miss(accesses.never_tokens)
    told: dict[str, Any] = {
        "requests": accesses.num_counted,
        "accesses": accesses.num_asked,
        "unique": accesses.num_unique_asked,
        "tokens": accesses.total_tokens,
        "hit_rate": _rates(blocks, options["blocks"]),
        "token_hit_rate": _rates(tokens, options["blocks"]),
    }
    if options["tiers"]:
        told["tiers"] = _split(blocks, tokens, options["tiers"], WriteMode(options["mode"]))
    if (options["sample_rate"], options["policy"]) != (None, None) and options["touch"] != TouchOrder.TAIL:
        raise ValueError(
            "A sample and another policy are told for our tiers' order of touching only: leave --touch out."
        )
    if options["policy"]:
        told["policy"] = _by_policy(accesses, options["blocks"], Policy(options["policy"]), options["sample_rate"] or 1)
    if options["sample_rate"] is not None:
        told["sample"] = _sample(accesses, options["blocks"], options["sample_rate"])
    return told


def _sample(accesses: Accesses, capacities: list[int | None], rate: float) -> dict[str, Any]:
    stack = trace_stack(rate)
    blocks, tokens = sampled_hits(accesses, stack)
    return {
        "rate": stack.rate,
        "kept_blocks": stack.num_blocks,
        "hit_rate": _named(capacities, blocks.rates(capacities)),
        "token_hit_rate": _named(capacities, tokens.rates(capacities)),
    }


def _by_policy(accesses: Accesses, capacities: list[int | None], policy: Policy, rate: float) -> dict[str, Any]:
    rates = miniature_rates(accesses, capacities, policy, rate)
    return {
        "name": policy.value,
        "rate": rate,
        "hit_rate": _named(capacities, [blocks for blocks, _ in rates]),
        "token_hit_rate": _named(capacities, [tokens for _, tokens in rates]),
    }


def _rates(curve: HitCurve, capacities: list[int | None]) -> dict[str, float]:
    """By capacity; 0 where nothing was asked for."""
    return _named(capacities, [hits / max(curve.total, 1) for hits in curve.at(capacities)])


def _named(capacities: list[int | None], rates: list[float]) -> dict[str, float]:
    names = ["inf" if capacity is None else str(capacity) for capacity in capacities]
    return dict(zip(names, rates, strict=True))


def _split(blocks: HitCurve, tokens: HitCurve, sizes: dict[Tier, int], mode: WriteMode) -> dict[str, Any]:
    capacities = list(sizes.values())
    hits = zip(sizes, capacities, blocks.split(capacities, mode), tokens.split(capacities, mode), strict=True)
    return {
        tier.value: {
            "blocks": capacity,
            "hit_blocks": num_blocks,
            "hit_rate": num_blocks / max(blocks.total, 1),
            "hit_tokens": num_tokens,
            "token_hit_rate": num_tokens / max(tokens.total, 1),
        }
        for tier, capacity, num_blocks, num_tokens in hits
    }


def _table(told: dict[str, Any]) -> str:
    lines = [f"{told['requests']:,} requests, {told['accesses']:,} block accesses, {told['unique']:,} distinct blocks"]
    lines += _rates_table(told, "")
    if "policy" in told:
        lines += _rates_table(
            told["policy"], f"{told['policy']['name']}, of {told['policy']['rate']:.4g} of the blocks"
        )
    if "sample" in told:
        sample = told["sample"]
        lines += _rates_table(sample, f"from {sample['rate']:.4g} of the deeper blocks, {sample['kept_blocks']:,} kept")
    if "tiers" in told:
        lines += ["", f"{'tier':>12}  {'of blocks':>9}  {'of tokens':>9}"]
        lines += [
            f"{name:>12}  {tier['hit_rate']:>9.2%}  {tier['token_hit_rate']:>9.2%}"
            for name, tier in told["tiers"].items()
        ]
    if "wrong_lines" in told:
        wrong = told["wrong_lines"]
        lines += ["", f"{wrong['count']:,} wrong lines were left out; the first:", *wrong["first"]]
    return "\n".join(lines)


def _rates_table(told: dict[str, Any], title: str) -> list[str]:
    return [
        "",
        *([title] if title else []),
        f"{'capacity':>12}  {'of blocks':>9}  {'of tokens':>9}",
        *(
            f"{_grouped(capacity):>12}  {rate:>9.2%}  {told['token_hit_rate'][capacity]:>9.2%}"
            for capacity, rate in told["hit_rate"].items()
        ),
    ]


def _grouped(capacity: str) -> str:
    return capacity if capacity == "inf" else f"{int(capacity):,}"


def _blocks(text: str) -> list[int | None]:
    return [None if part.strip() == "inf" else _size(part) for part in text.split(",")]


def _tiers(text: str) -> dict[Tier, int]:
    sizes: dict[Tier, int] = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if name.strip() not in TIERS:
            raise argparse.ArgumentTypeError(f"“{name.strip()}” is no tier; expected {', '.join(TIERS)}, each =BLOCKS")
        sizes[Tier(name.strip())] = _size(size)
    if list(sizes) != [tier for tier in TIERS if tier in sizes]:
        raise argparse.ArgumentTypeError("tiers have to be named fastest first: gpu, cpu, disk, remote")
    return sizes


def _size(text: str) -> int:
    if not text.strip().isdecimal() or int(text) >= 1 << 40:
        raise argparse.ArgumentTypeError(f"“{text.strip()[:40]}” is no number of blocks; expected 0, 1, 2, … or inf")
    return int(text)
