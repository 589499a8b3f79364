"""Valid things, spoiled: JSON, bytes and texts with a few places changed."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hypothesis import strategies as st

_FIELDS = """
    type id role text content summary refusal arguments call_id name status phase
    encrypted_content output_index content_index delta item response output usage
    input_tokens error code message url payload items dead origin function tool_calls
"""
_VALUES = """
    message reasoning function_call custom_tool_call function_call_output
    summary_text output_text refusal assistant user system tool incomplete failed
"""
_ODD = [None, True, False, 0, -1, 7, 2**63, 0.5, float("inf"), "", "\0", "\ud800"]
_JUNK = st.recursive(
    st.sampled_from([*_ODD, *_VALUES.split()]) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(_FIELDS.split()), inner, max_size=3),
    max_leaves=5,
)
_CHANGES = ("replace", "replace", "drop", "twin", "move", "bury")
_DEPTH = 60


@st.composite
def mutated(draw: st.DrawFn, sources: Sequence[Any], most: int = 4) -> Any:
    """A copy of one of these objects or arrays, changed in a few places."""
    value = json.loads(json.dumps(draw(st.sampled_from(sources))))
    for _ in range(draw(st.integers(1, most))):
        holder, key = _place(draw, value)
        _change(draw, value, holder, key)
    return value


def _place(draw: st.DrawFn, value: Any) -> tuple[Any, Any]:
    """Choose a place: every branch counts alike, however much is below it."""
    holder = value
    while True:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        if not keys:
            return holder, None
        key = draw(st.sampled_from(keys))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or _stops(draw):
            return holder, key
        holder = inner


def _stops(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 5)) == 0


def _change(draw: st.DrawFn, value: Any, holder: Any, key: Any) -> None:
    change = draw(st.sampled_from(_CHANGES))
    if key is None:
        return
    if change == "replace":
        holder[key] = draw(_JUNK)
    elif change == "drop":
        del holder[key]
    elif change == "bury":
        holder[key] = _buried(holder[key])
    else:
        other, other_key = _place(draw, value) if change == "move" else (holder, key)
        _insert(draw, holder, key, json.loads(json.dumps(other[other_key])))


def _insert(draw: st.DrawFn, holder: Any, key: Any, twin: Any) -> None:
    """Put a copy next to what is at a place, or in its stead."""
    if isinstance(holder, list):
        holder.insert(draw(st.integers(0, len(holder))), twin)
    else:
        holder[draw(st.sampled_from([key, *_FIELDS.split()]))] = twin


def _buried(value: Any) -> Any:
    for level in range(_DEPTH):
        value = [value] if level % 2 else {"error": value}
    return value


@st.composite
def spoiled(draw: st.DrawFn, sources: Sequence[bytes]) -> bytes:
    """One of these texts with spans cut out, doubled or overwritten."""
    text = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = start + draw(st.integers(0, 40))
        filling = draw(st.sampled_from([b"", text[start:stop] * 2, b"\n", b"\r\n\r"]))
        text = text[:start] + (filling or draw(st.binary(max_size=6))) + text[stop:]
    return text


class TooLong(Exception):
    """It did not come to an end."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Interrupt what takes more than these seconds of CPU, also in a loop without end.

    Time that other programs take does not count.
    """
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_: int, __: FrameType | None) -> None:
    raise TooLong
