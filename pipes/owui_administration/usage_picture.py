"""Pictures of what was used, as blocks that Open WebUI draws: `vega-lite`.

The page has drawn them since 0.6.33 (`renderVegaVisualization`, src/lib/utils/index.ts):
once, without a container whose size a picture could take, so its width depends on that
of the window. Colors of the page are taken where they are `currentColor`. Nothing is
fetched: the data is in the block.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil
from typing import Any

from owui_administration.usage_table import UsageRow
from owui_chat.wording import plural
from shells.administration import MILLIONTHS

_COLORS = (
    "#275AB6",
    "#D07427",
    "#8CCA75",
    "#80447A",
    "#00CCFC",
    "#A72120",
    "#E7B300",
    "#8739FF",
)
"""Any two, and the last color, differ by 25 or more (CIE 1976), also for people who lack
one kind of cones (Machado et al. 2009); each is seen on white and on black."""
_COLOR_OF_OTHERS = "#999999"
_MOST_USERS = 10
_MOST_BARS = 92
"""Above that many days a bar is a week."""
_MOST_LABELS = 5
_DAY_MS = 86_400_000
_TEXT = "currentColor"
_CONFIG = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _TEXT,
        "domainColor": _TEXT,
        "tickColor": _TEXT,
        "gridColor": _TEXT,
        "gridOpacity": 0.15,
        "labelFontSize": 12,
    },
    "legend": {
        "labelColor": _TEXT,
        "labelFontSize": 12,
        "symbolType": "square",
        "labelLimit": 150,
    },
    "title": {
        "color": _TEXT,
        "subtitleColor": _TEXT,
        "fontSize": 14,
        "subtitleFontSize": 12,
        "anchor": "start",
        "frame": "bounds",
        # Buttons of the page lie on the right above the picture.
        "offset": 16,
    },
}


Layer = dict[str, Any]
"""A part of a specification of Vega-Lite."""


def day_picture(
    rows: Sequence[UsageRow], saved: Mapping[str, int], since: date, today: date
) -> str:
    """Return the picture of the money of each day, by model; empty if there is none.

    `saved` is what the cache saved on a day; a line shows the sum of both.
    """
    named, others = _models_by_money(rows)
    if not named:
        return ""
    scale = {"domain": list(named), "range": list(_COLORS[: len(named)])}
    if others:
        scale["domain"].append(plural(others, "other model"))
        scale["range"].append(_COLOR_OF_OTHERS)

    # What each model cost at each place, and what all of it would be without the cache.
    days = (today - since).days + 1
    step = 1 if days <= _MOST_BARS else 7
    bars = Counter[tuple[int, int]]()
    whole = Counter[int]()
    for row in rows:
        place = (date.fromisoformat(row.day) - since).days // step
        rank = named.index(row.model) if row.model in named else len(named)
        bars[place, rank] += row.money
        whole[place] += row.money
    for day, money in saved.items():
        whole[(date.fromisoformat(day) - since).days // step] += money

    start = (since - date(1970, 1, 1)).days * _DAY_MS
    x = _day_axis(start, days)
    y = _money_axis(max(whole.values()))
    width = step * _DAY_MS
    from_place = {"calculate": f"{start} + {width} * datum.place", "as": "from"}
    lines = [
        f"{place},{rank},{_dollars(money)}"
        for (place, rank), money in sorted(bars.items())
        if money
    ]
    layers = [_bars(lines, from_place, width, x, y, scale)]
    title = {"text": f"US dollars a {'day' if step == 1 else 'week'}"}
    if any(money > 0 for money in saved.values()):
        title["subtitle"] = "The line: without the prompt cache"
        last = (days - 1) // step
        lines = [f"{place},{_dollars(whole[place])}" for place in range(last + 1)]
        lines.append(f"{last + 1},{_dollars(whole[last])}")
        layers.append(_outline(lines, from_place, x, y))
    return _block(
        {
            "title": title,
            "width": 560,
            "height": 200,
            "params": [_width(270, 560), {"name": "names", "value": scale["domain"]}],
            "layer": layers,
        }
    )


def _models_by_money(rows: Sequence[UsageRow]) -> tuple[list[str], int]:
    """Return the models that cost the most, and how many others cost something.

    The former have their own colors, all others share one.
    """
    money_of_models = Counter[str]()
    for row in rows:
        money_of_models[row.model] += row.money
    most = money_of_models.most_common(len(_COLORS))
    named = [name for name, money in most if money]
    paid = sum(money > 0 for money in money_of_models.values())
    return named, paid - len(named)


def _day_axis(start: int, days: int) -> Layer:
    """Return the axis of so many days, with labels of a few; `start` is in milliseconds."""
    end = start + days * _DAY_MS
    every = ceil(days / _MOST_LABELS)
    ticks = [start + day * _DAY_MS + _DAY_MS // 2 for day in range(0, days, every)]
    return {
        "field": "from",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc", "domain": [start, end], "nice": False},
        "axis": {"format": "%-d %b", "values": ticks, "grid": False},
    }


def _money_axis(most: int) -> Layer:
    """Return the axis of money, with the digits that its numbers need."""
    number = "$,.0f" if most >= 5 * MILLIONTHS else "$.2f"
    if most < MILLIONTHS // 20:
        number = "$.4f"
    return {
        "field": "dollars",
        "type": "quantitative",
        "title": None,
        "axis": {"format": number, "tickCount": 5},
    }


def _bars(
    lines: Sequence[str],
    from_place: Layer,
    width: int,
    x: Layer,
    y: Layer,
    scale: Layer,
) -> Layer:
    """Return the layer of the money by model, one bar for each `width` of milliseconds."""
    return {
        "data": _inline_csv("place,rank,dollars", lines),
        "transform": [
            from_place,
            {"calculate": f"datum.from + {width} * 0.85", "as": "to"},
            {"calculate": "names[datum.rank]", "as": "model"},
            {
                "stack": "dollars",
                "groupby": ["place"],
                "sort": [{"field": "rank"}],
                "as": ["low", "high"],
            },
        ],
        # Not a bar: Vega-Lite takes one with two places on x for a horizontal one.
        "mark": {"type": "rect", "clip": True},  # the last week may not be over
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": {
                "field": "model",
                "type": "nominal",
                "title": None,
                "scale": scale,
                "legend": {
                    "orient": "bottom",
                    "columns": {"expr": "width < 400 ? 2 : 4"},
                },
            },
        },
    }


def _outline(lines: Sequence[str], from_place: Layer, x: Layer, y: Layer) -> Layer:
    """Return the layer of what all would cost without the cache."""
    return {
        "data": _inline_csv("place,dollars", lines),
        "transform": [from_place],
        "mark": {
            "type": "line",
            "interpolate": "step-after",
            "color": _TEXT,
            "strokeWidth": 1.5,
            "clip": True,
        },
        "encoding": {"x": x, "y": y},
    }


def user_picture(rows: Sequence[UsageRow], all_money: int) -> str:
    """Return the picture of the money of each user; empty if fewer than two cost any.

    `rows` have the users who cost the most; what is left of `all_money` is told above:
    its bar would make all others small.
    """
    money_of_users = Counter[str]()
    for row in rows:
        money_of_users[row.user_id] += row.money
    most = money_of_users.most_common(_MOST_USERS)
    top = [(name, money) for name, money in most if money > 0]
    if len(top) < 2:
        return ""
    title = {"text": "US dollars by user"}
    rest = all_money - sum(money for _, money in top)
    if rest > 0:
        title["subtitle"] = f"All others: ${rest / MILLIONTHS:,.2f}"
    digits = 2 if top[0][1] >= MILLIONTHS // 20 else 4
    values = [
        {
            "user": name,
            "dollars": money / MILLIONTHS,
            "label": f"${money / MILLIONTHS:,.{digits}f}",
        }
        for name, money in top
    ]
    limit = {"expr": "width < 300 ? 120 : 240"}
    y = {
        "field": "user",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"domain": False, "ticks": False, "labelLimit": limit},
    }
    x = {"field": "dollars", "type": "quantitative", "title": None, "axis": None}
    return _block(
        {
            "title": title,
            "width": 420,
            "height": {"step": 20},
            "params": [_width(140, 420)],
            "data": {"values": values},
            "encoding": {"y": y, "x": x},
            "layer": [
                {"mark": {"type": "bar", "color": _COLORS[0]}},
                {
                    "mark": {"type": "text", "align": "left", "dx": 4, "color": _TEXT},
                    "encoding": {"text": {"field": "label"}},
                },
            ],
        }
    )


def _width(on_phone: int, else_: int) -> dict[str, str]:
    """Return the width of a picture; Vega takes a signal of this name for it."""
    return {"name": "width", "expr": f"windowSize()[0] < 700 ? {on_phone} : {else_}"}


def _inline_csv(head: str, lines: Sequence[str]) -> dict[str, Any]:
    """Return data in the form that takes the least room in a chat."""
    parse = dict.fromkeys(head.split(","), "number")
    return {
        "values": "\n".join((head, *lines)),
        "format": {"type": "csv", "parse": parse},
    }


def _dollars(money: int) -> str:
    return f"{money / MILLIONTHS:.4f}".rstrip("0").rstrip(".")


def _block(picture: dict[str, Any]) -> str:
    """Return the block of code that the page draws."""
    whole = {"background": "transparent", "config": _CONFIG, **picture}
    return f"```vega-lite\n{json.dumps(whole, separators=(',', ':'))}\n```"
