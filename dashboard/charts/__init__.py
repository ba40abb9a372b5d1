"""Series in, Plotly figures out: pure functions. Knows nothing about the database, HTTP or who looks.

A figure is a plain dict `{"data": [...], "layout": {...}}` with times as Unix milliseconds. Colours of text, grid and
ground are left out: the browser fills them in from its theme.
"""

from dashboard.charts.hit_rate import hit_rate_figure
from dashboard.charts.marks import with_marks
from dashboard.charts.residency import residency_figure
from dashboard.charts.tokens import tokens_figure
from dashboard.charts.ttft import ttft_figure

__all__ = ["hit_rate_figure", "residency_figure", "tokens_figure", "ttft_figure", "with_marks"]
