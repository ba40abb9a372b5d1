"""The tiers' colours: the same in Python and in CSS, readable on both grounds, apart for all kinds of colour vision."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from dashboard.charts.palette import COMPUTED, LOOKS, TENANT_LOOKS, Look
from dashboard.models import CacheTier
from dashboard.selectors.tenants import MOST_DRAWN

CSS = (Path(__file__).parents[2] / "static/css/base.css").read_text()
GROUNDS = {"light": "#ffffff", "dark": "#161a20"}

# Linear RGB as people without one kind of cone see it (Viénot, Brettel and Mollon 1999; tritan after Brettel 1997).
VISION = {
    "protan": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deutan": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
}


def linear(colour: str) -> tuple[float, ...]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(rgb: tuple[float, ...]) -> tuple[float, float, float]:
    red, green, blue = rgb
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def seen(colour: str, vision: str) -> tuple[float, float, float]:
    rgb = linear(colour)
    return lab(tuple(max(0.0, sum(w * c for w, c in zip(row, rgb, strict=True))) for row in VISION[vision]))


@pytest.mark.parametrize("origin", [*CacheTier.values, COMPUTED])
def test_css_and_charts_have_the_same_colour(origin: str) -> None:
    assert set(re.findall(rf"--tier-{origin}: (#[0-9a-f]{{6}})", CSS)) == {LOOKS[origin].colour}


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("origin", LOOKS)
def test_each_colour_stands_out_from_the_ground(origin: str, ground: str) -> None:
    assert contrast(LOOKS[origin].colour, GROUNDS[ground]) >= 3


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("look", TENANT_LOOKS)
def test_each_colour_of_a_tenant_stands_out_from_the_ground(look: Look, ground: str) -> None:
    assert contrast(look.colour, GROUNDS[ground]) >= 3


@pytest.mark.parametrize("vision", VISION)
def test_tenants_look_different(vision: str) -> None:
    colours = [seen(look.colour, vision) for look in (*TENANT_LOOKS, LOOKS[COMPUTED])]
    distances = [sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) ** 0.5 for pair in combinations(colours, 2)]
    assert min(distances) >= 20
    assert len(TENANT_LOOKS) == MOST_DRAWN


@pytest.mark.parametrize("vision", VISION)
def test_the_tiers_and_what_was_computed_look_different(vision: str) -> None:
    colours = {origin: seen(LOOKS[origin].colour, vision) for origin in ("gpu", "cpu", "disk", "remote", COMPUTED)}
    distances = {
        pair: sum((a - b) ** 2 for a, b in zip(colours[pair[0]], colours[pair[1]], strict=True)) ** 0.5
        for pair in combinations(colours, 2)
    }
    assert min(distances.values()) >= 12, distances
