r"""Runs of deltas, joined to one event before they are parsed.

A server that is faster than its reader sends hundreds of deltas in one chunk. Each
repeats 250 bytes of JSON around a word:

    event: response.output_text.delta
    data: {"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_1",
    "output_index":0,"content_index":0,"delta":" word","logprobs":[],"obfuscation":"xIR"}

(without the line break in its data). A run is such an event and those directly after
it that are the same, byte for byte, except for the values of `delta`, `sequence_number`
and `obfuscation`. All of them add to the same text, so the run becomes its first event
with the texts of all. The parser reads that one with all its checks, and what it says of
the first is true of the others. This takes a third of the time of parsing each.

What might mean anything else stays as it is, for the parser: an event with an object
inside (the `logprobs` of those who ask for some), with a backslash outside of the three
values, with spaces between the tokens, with two types or two deltas, of another type
than its name, or with `\u` in a text: halves of a character in two deltas would become
one.
"""

import re

# Each `*+`, `++` and `{…}+` is possessive: it gives back nothing that it matched, so that
# no text of a server makes a search slow.

_TEXT_PIECE = r'[^"\\\x00-\x1f]*+'
_TEXT_INSIDE = rf'{_TEXT_PIECE}(?:\\["\\/bfnrt]{_TEXT_PIECE})*+'
"""Between the quotation marks of a text in JSON."""
_WHOLE_NUMBER = r'(?<!"delta":)(?:0|[1-9][0-9]{0,17}+)'
"""Of up to 18 digits; not of a delta, which is a text."""

_VARYING = r'"(?:delta|sequence_number|obfuscation)":'
"""The names of what differs in a run."""
_VALUE = rf'(?:"{_TEXT_INSIDE}"|{_WHOLE_NUMBER})'
_SHARED = rf'[^"\n\\{{]*+(?:(?!{_VARYING})"[^"\n\\{{]*+)*+'
"""What all events of a run repeat, up to the next name of what differs."""

_FIRST_EVENT = (
    # Where the pattern begins with plain letters, `re` finds an event fast. It has to
    # begin a line.
    r"event:(?<!.event:) (?P<name>response\.[a-z_.]++)\n"
    rf"data: \{{(?P<begin>{_SHARED}{_VARYING}){_VALUE}"
    rf"(?:(?P<second>{_SHARED}{_VARYING}){_VALUE})?"
    rf"(?:(?P<third>{_SHARED}{_VARYING}){_VALUE})?"
    rf"(?P<end>{_SHARED}\n\n)"
)
"""An event with one to three of the names of `_VARYING`; the groups hold the rest."""
_NEXT_EVENT = (
    # `(?(second)…)` matches only if the first event has a second value.
    r"event: (?P=name)\n"
    rf"data: \{{(?P=begin){_VALUE}"
    rf"(?(second)(?P=second){_VALUE})"
    rf"(?(third)(?P=third){_VALUE})"
    r"(?P=end)"
)
_DELTA_RUN = re.compile(rf"(?P<first>{_FIRST_EVENT})(?:{_NEXT_EVENT})++")
_DELTA = re.compile(rf'"delta":"({_TEXT_INSIDE})"')


def join_delta_runs(text: str) -> str:
    """Return the text of whole events, with each run of deltas joined to one event."""
    return _DELTA_RUN.sub(_join_run, text)


def _join_run(run: re.Match[str]) -> str:
    """Return the first event of a run with the texts of all; else the run as it is."""
    first = run["first"]
    has_one_text = first.count('"delta":') == 1
    has_one_type = first.count('"type":') == 1 and f'"type":"{run["name"]}"' in first
    if not has_one_text or not has_one_type:
        return run[0]
    texts = _DELTA.findall(run[0])
    joined = "".join(texts)
    return first.replace(f'"delta":"{texts[0]}"', f'"delta":"{joined}"')
