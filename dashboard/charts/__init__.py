"""Series in, Plotly figures out: pure functions. Knows nothing about the database, HTTP or who looks.

A figure is a plain dict `{"data": [...], "layout": {...}}` with times as Unix milliseconds. Colours of text, grid and
ground are left out: the browser fills them in from its theme.
"""

from dashboard.charts.bandwidth import bandwidth_figure
from dashboard.charts.counted import failures_figure, skipped_figure
from dashboard.charts.flows import flows_figure
from dashboard.charts.hit_rate import hit_rate_figure
from dashboard.charts.load_times import load_times_figure
from dashboard.charts.marks import with_marks
from dashboard.charts.residency import residency_figure
from dashboard.charts.tenants import tenant_hit_rate_figure, tenant_tokens_figure
from dashboard.charts.tokens import tokens_figure
from dashboard.charts.ttft import ttft_figure

__all__ = [
    "bandwidth_figure",
    "failures_figure",
    "flows_figure",
    "hit_rate_figure",
    "load_times_figure",
    "residency_figure",
    "skipped_figure",
    "tenant_hit_rate_figure",
    "tenant_tokens_figure",
    "tokens_figure",
    "ttft_figure",
    "with_marks",
]
