"""The pictures of `/usage`: the whole blocks that a page gets, and their bounds."""

import json
from datetime import date, timedelta
from typing import Any

import pytest

from owui_administration.usage_picture import day_picture, user_picture
from owui_administration.usage_table import UsageRow

Json = dict[str, Any]
FIRST = date(2026, 11, 26)
TODAY = date(2026, 11, 28)
ROW = UsageRow("ann", "2026-11-28", "gpt-6.1-sol", 1, 1, 0, 1, 500_000)
ROWS = [
    ROW._replace(day="2026-11-26", money=2_000_000),
    ROW,
    ROW._replace(model="gpt-6-luna", money=250_000),
]

CONFIG: Json = json.loads(r"""
{"font": "sans-serif", "view": {"stroke": null},
 "axis": {"labelColor": "currentColor", "domainColor": "currentColor",
          "tickColor": "currentColor", "gridColor": "currentColor",
          "gridOpacity": 0.15, "labelFontSize": 12},
 "legend": {"labelColor": "currentColor", "labelFontSize": 12,
            "symbolType": "square", "labelLimit": 150},
 "title": {"color": "currentColor", "subtitleColor": "currentColor", "fontSize": 14,
           "subtitleFontSize": 12, "anchor": "start", "frame": "bounds",
           "offset": 16}}
""")
DAYS: Json = json.loads(r"""
{"background": "transparent",
 "title": {"text": "US dollars a day",
           "subtitle": "The line: without the prompt cache"},
 "width": 560, "height": 200,
 "params": [{"name": "width", "expr": "windowSize()[0] < 700 ? 270 : 560"},
            {"name": "names", "value": ["gpt-6.1-sol", "gpt-6-luna"]}],
 "layer": [{"data": {"values": "place,rank,dollars\n0,0,2\n2,0,0.5\n2,1,0.25",
                     "format": {"type": "csv",
                                "parse": {"place": "number", "rank": "number",
                                          "dollars": "number"}}},
            "transform": [{"calculate": "1795651200000 + 86400000 * datum.place",
                           "as": "from"},
                          {"calculate": "datum.from + 86400000 * 0.85", "as": "to"},
                          {"calculate": "names[datum.rank]", "as": "model"},
                          {"stack": "dollars", "groupby": ["place"],
                           "sort": [{"field": "rank"}], "as": ["low", "high"]}],
            "mark": {"type": "rect", "clip": true},
            "encoding": {"x": {"field": "from", "type": "temporal", "title": null,
                               "scale": {"type": "utc",
                                         "domain": [1795651200000, 1795910400000],
                                         "nice": false},
                               "axis": {"format": "%-d %b",
                                        "values": [1795694400000, 1795780800000,
                                                   1795867200000],
                                        "grid": false}},
                         "x2": {"field": "to"},
                         "y": {"field": "low", "type": "quantitative",
                               "title": null,
                               "axis": {"format": "$.2f", "tickCount": 5}},
                         "y2": {"field": "high"},
                         "color": {"field": "model", "type": "nominal",
                                   "title": null,
                                   "scale": {"domain": ["gpt-6.1-sol", "gpt-6-luna"],
                                             "range": ["#275AB6", "#D07427"]},
                                   "legend": {"orient": "bottom",
                                              "columns": {"expr": "width < 400 ? 2 : 4"}}}}},
           {"data": {"values": "place,dollars\n0,2\n1,0\n2,0.85\n3,0.85",
                     "format": {"type": "csv",
                                "parse": {"place": "number", "dollars": "number"}}},
            "transform": [{"calculate": "1795651200000 + 86400000 * datum.place",
                           "as": "from"}],
            "mark": {"type": "line", "interpolate": "step-after",
                     "color": "currentColor", "strokeWidth": 1.5, "clip": true},
            "encoding": {"x": {"field": "from", "type": "temporal", "title": null,
                               "scale": {"type": "utc",
                                         "domain": [1795651200000, 1795910400000],
                                         "nice": false},
                               "axis": {"format": "%-d %b",
                                        "values": [1795694400000, 1795780800000,
                                                   1795867200000],
                                        "grid": false}},
                         "y": {"field": "dollars", "type": "quantitative",
                               "title": null,
                               "axis": {"format": "$.2f", "tickCount": 5}}}}]}
""")
"""Two models; on the last day a cache saved ten cents."""
USERS: Json = json.loads(r"""
{"background": "transparent",
 "title": {"text": "US dollars by user", "subtitle": "All others: $2.25"},
 "width": 420, "height": {"step": 20},
 "params": [{"name": "width", "expr": "windowSize()[0] < 700 ? 140 : 420"}],
 "data": {"values": [{"user": "ann", "dollars": 2.25, "label": "$2.25"},
                     {"user": "ben", "dollars": 0.5, "label": "$0.50"}]},
 "encoding": {"y": {"field": "user", "type": "nominal", "title": null, "sort": null,
                    "axis": {"domain": false, "ticks": false,
                             "labelLimit": {"expr": "width < 300 ? 120 : 240"}}},
              "x": {"field": "dollars", "type": "quantitative", "title": null,
                    "axis": null}},
 "layer": [{"mark": {"type": "bar", "color": "#275AB6"}},
           {"mark": {"type": "text", "align": "left", "dx": 4,
                     "color": "currentColor"},
            "encoding": {"text": {"field": "label"}}}]}
""")


def block(text: str) -> Json:
    begin, picture, end = text.splitlines()
    assert (begin, end) == ("```vega-lite", "```")
    drawn: Json = json.loads(picture)
    return drawn


def test_days_are_bars_of_models_below_a_line() -> None:
    """Where nothing was saved, without the line."""
    drawn = block(day_picture(ROWS, {"2026-11-28": 100_000}, FIRST, TODAY))
    unsaved = block(day_picture(ROWS, {"2026-11-28": 0}, FIRST, TODAY))

    assert drawn == {**DAYS, "config": CONFIG}
    assert unsaved["layer"] == DAYS["layer"][:1]
    assert unsaved["title"] == {"text": "US dollars a day"}


def test_users_are_bars_the_dearest_first() -> None:
    names = ("ann", "ben", "ann")
    rows = [row._replace(user_id=name) for row, name in zip(ROWS, names, strict=True)]

    assert block(user_picture(rows, 5_000_000)) == {**USERS, "config": CONFIG}


@pytest.mark.parametrize(
    ("money", "format_of_days", "label"),
    [
        (5_000_000, "$,.0f", "$5.00"),
        (4_999_999, "$.2f", "$5.00"),
        (50_000, "$.2f", "$0.05"),
        (49_999, "$.4f", "$0.0500"),
    ],
)
def test_small_sums_have_more_digits(
    money: int, format_of_days: str, label: str
) -> None:
    row = ROW._replace(money=money)
    days = block(day_picture([row], {}, TODAY, TODAY))
    users = block(user_picture([row, ROW._replace(user_id="ben", money=1)], money + 1))

    assert days["layer"][0]["encoding"]["y"]["axis"]["format"] == format_of_days
    assert users["data"]["values"][0]["label"] == label


@pytest.mark.parametrize(
    ("moneys", "named", "last"),
    [
        ([1], 1, "m0"),
        ([1, 0], 1, "m0"),
        ([8, 7, 6, 5, 4, 3, 2, 1], 8, "m7"),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 9, "1 other model"),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 0], 9, "2 other models"),
    ],
)
def test_models_that_cost_nothing_are_not_drawn(
    moneys: list[int], named: int, last: str
) -> None:
    rows = [
        ROW._replace(model=f"m{number}", money=money * 1_000_000)
        for number, money in enumerate(moneys)
    ]

    scale = block(day_picture(rows, {}, TODAY, TODAY))["layer"][0]["encoding"]["color"]
    names = scale["scale"]["domain"]

    assert (len(names), names[-1]) == (named, last)
    assert len(scale["scale"]["range"]) == named
    assert (scale["scale"]["range"][-1] == "#999999") is ("other" in last)


@pytest.mark.parametrize(
    ("moneys", "shown", "subtitle"),
    [
        ([3, 0], None, None),
        ([3], None, None),
        ([3, 1], 2, None),
        ([3, 1, 0], 2, None),
        ([5] * 10, 10, None),
        ([5] * 11, 10, "All others: $5.00"),
    ],
)
def test_ten_users_are_drawn(
    moneys: list[int], shown: int | None, subtitle: str | None
) -> None:
    """One alone is no picture; the rest is a sum above it."""
    rows = [
        ROW._replace(user_id=f"u{number}", money=money * 1_000_000)
        for number, money in enumerate(moneys)
    ]

    text = user_picture(rows, sum(row.money for row in rows))

    if shown is None:
        assert text == ""
        return
    picture = block(text)
    assert len(picture["data"]["values"]) == shown
    assert picture["title"].get("subtitle") == subtitle


@pytest.mark.parametrize(
    ("days", "bars", "word"),
    [(1, 1, "day"), (92, 92, "day"), (93, 14, "week"), (98, 14, "week")],
)
def test_more_than_92_days_are_weeks(days: int, bars: int, word: str) -> None:
    first = TODAY - timedelta(days - 1)
    rows = [
        ROW._replace(day=(first + timedelta(number)).isoformat())
        for number in range(days)
    ]

    picture = block(day_picture(rows, {"2026-11-28": 1_000_000}, first, TODAY))

    drawn, line = (layer["data"]["values"].splitlines() for layer in picture["layer"])
    assert len(drawn) == 1 + bars
    assert picture["title"]["text"] == f"US dollars a {word}"
    # The line goes on to the end of the last bar.
    assert [row.split(",")[0] for row in line[-2:]] == [str(bars - 1), str(bars)]
    x = picture["layer"][0]["encoding"]["x"]
    [begin, end] = x["scale"]["domain"]
    assert end - begin == days * 86_400_000
    assert len(x["axis"]["values"]) <= 5
