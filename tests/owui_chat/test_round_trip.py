"""A run, kept and shown, stored by the real host and read back, is the run again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats.pictures import PNG, data_url
from chats.round_trip import (
    Json,
    Round,
    expected,
    sent_next,
    stored_by_host,
    told_items,
)
from hosts.servers.functions import HostFunctions
from openai_responses.items import Item, is_call, item_type, message_text
from openai_responses.json_input import JsonBudget
from openai_responses.loop.events import RunEvent
from openai_responses.requests.replay import replay_items
from owui_chat.input.history import build_input
from owui_chat.input.prefix import (
    apply_sent_context,
    change_instructions,
    find_injected_context,
    read_sent_context,
    sent_instructions,
)
from owui_chat.messages import attach_stored_messages, parse_messages
from owui_chat.storage.records import message_key, read_records, write_records
from runs.sample import (
    ORIGIN,
    Ids,
    call,
    has_marker,
    message,
    reasoning,
    refusal,
    run_of,
    run_of_chunks,
    run_of_transcript,
    search,
)
from runs.streams import STREAMS, Stream
from stand_in.signing import KEYS, SIGN, with_sent
from upstream.odd_streams import ANSWER, FOLDER, WHOLE_ANSWERS


@dataclass(frozen=True)
class Question:
    """What a person asks, and what the host makes of it while it is asked."""

    words: str
    context: str  # in front of the words, as long as they are asked
    note: str  # in front of them always
    pictures: int
    instructions: str

    @property
    def content(self) -> Any:
        """The message as the host gives it back later."""
        return self._content(self.note + self.words)

    @property
    def asked(self) -> Any:
        """The message as the host gives it now."""
        text = self.note + self.words
        return self._content(f"{self.context}\n{text}" if self.context else text)

    def _content(self, text: str) -> Any:
        url = {"type": "image_url", "image_url": {"url": data_url(PNG, "image/png")}}
        pictures = [url] * self.pictures
        return [{"type": "text", "text": text}, *pictures] if pictures else text


class SavedChat:
    """A chat as the host and the pipe keep it between its turns."""

    def __init__(self, host: HostFunctions) -> None:
        self.host = host
        self.ids = Ids()
        self.row: Json = {}
        self.messages: Json = {}
        self.earlier: list[Json] = []
        self.parent = ""

    def ask(self, question: Question, number: int) -> tuple[str, list[Item]]:
        """What is sent for a question: the instructions, the input."""
        asked = f"q{number}"
        answer = f"a{number}"
        row = {"role": "user", "content": question.words, "parentId": self.parent}
        self.messages[asked] = row
        self.parent = asked
        system = {"role": "system", "content": question.instructions}
        message = {"role": "user", "content": question.asked}
        given, parts = parse_messages([system, *self.earlier, message])
        metadata = {"user_message_id": asked, "message_id": answer}
        parts = attach_stored_messages(parts, self.messages, metadata)
        self.row = json.loads(json.dumps(self.row))
        sent = read_sent_context(self.row, KEYS.unseal, JsonBudget(99_999))
        instructions = sent_instructions(parts, sent, "f.gpt")
        injected = find_injected_context(parts)
        change = change_instructions(instructions, given, "f.gpt")
        sent[answer] = change._replace(injected=injected)
        key = message_key(answer)
        self.row[key] = with_sent({}, sent[answer], key)
        instructions = sent_instructions(parts, sent, "f.gpt")
        assert instructions
        prefix = apply_sent_context(parts, sent, instructions.changes, {})
        return instructions.first, build_input(
            prefix, read_records(self.row, SIGN), ORIGIN
        )

    def answer(self, question: Question, number: int, rounds: Sequence[Round]) -> None:
        """Take the answer."""
        key = message_key(f"a{number}")
        output, records = stored_by_host(self.host, rounds, ids=self.ids)
        self.row[key] |= write_records(records, SIGN)
        user_message = {"role": "user", "content": question.content}
        self.earlier += [user_message, *self.host.convert(output)]
        self.messages[f"a{number}"] = {"role": "assistant", "parentId": self.parent}
        self.parent = f"a{number}"


def assert_prefixes(
    host: HostFunctions, turns: Sequence[tuple[Question, Sequence[Round]]]
) -> None:
    """Each turn sends what the one before sent, what that received, and the new."""
    chat = SavedChat(host)
    before: list[Item] = []
    for number, (question, rounds) in enumerate(turns):
        instructions, items = chat.ask(question, number)
        assert instructions == turns[0][0].instructions
        assert items[: len(before)] == before
        roles = [item.get("role") for item in items[len(before) :]]
        assert roles in (["user"], ["developer", "user"])
        chat.answer(question, number, rounds)
        before = [*items, *expected(rounds)]


@pytest.mark.parametrize("carrier", ["markers", "output"])
@pytest.mark.parametrize("thought", [(), (reasoning("1"),)])
def test_white_space_around_a_preamble_stays(
    thought: tuple[Item, ...], carrier: str, host_functions: HostFunctions
) -> None:
    """A server that caches prompts reads on after it only if it is the same."""
    looking = run_of(*thought, message("1", "I look. "), call("1"))
    rounds = [looking, run_of(message("2", "Rain."))]

    sent = sent_next(host_functions, rounds, carrier)

    texts = [message_text(item) for item in sent if item.get("role") == "assistant"]
    assert texts == ["I look. ", "Rain."]


@pytest.mark.parametrize("carrier", ["markers", "output"])
@pytest.mark.parametrize("name", sorted({*WHOLE_ANSWERS} - {"server-run-custom-call"}))
def test_answer_that_ended_oddly_is_replayed_as_it_came(
    name: str, carrier: str, host_functions: HostFunctions
) -> None:
    """An item may end twice, and a message that came twice is shown once."""
    rounds = [run_of_transcript(f"{name}.sse", FOLDER)]

    sent = sent_next(host_functions, rounds, carrier)

    assert sent == expected(rounds, carrier)
    texts = [
        message_text(item).strip() for item in sent if item_type(item) == "message"
    ]
    assert texts == [ANSWER.strip()] * (2 if name == "doubled-message" else 1)


@pytest.mark.parametrize("carrier", ["markers", "output"])
@pytest.mark.parametrize("phase", [None, "commentary", "final_answer"])
def test_message_that_came_twice_in_front_of_others(
    carrier: str, phase: str | None, host_functions: HostFunctions
) -> None:
    """The hidden one keeps its place, whatever follows it."""
    twice = message("1", "One.", phase), message("2", "One.", phase)
    for rest in ([message("3", "Two.", phase)], [reasoning("3"), message("4", "Two.")]):
        rounds = [run_of(*twice, *rest)]
        sent = sent_next(host_functions, rounds, carrier)
        assert sent == expected(rounds, carrier)


SIMULATED = [stream for stream in STREAMS if stream.is_simulated]
"""Their requests have all tools, so that each chat may hold all of them."""

short_texts = st.text(min_size=1, max_size=20).filter(
    lambda text: bool(text.strip()) and not has_marker(text)
)
texts = short_texts | st.builds("".join, st.lists(short_texts, min_size=5, max_size=40))
"""Of a long one the chat stores only what the shown text does not have."""
phases = st.sampled_from([None, "commentary", "final_answer"])
two_parts = texts.filter(lambda text: text == text.strip()).map(
    lambda text: {
        **message("x", text),
        "content": [part for _ in "ab" for part in message("x", text)["content"]],
    }
)
spoken_items = st.one_of(
    st.builds(lambda text, phase: message("x", text, phase), texts, phases),
    texts.map(lambda text: refusal("x", text)),
    two_parts,
)
thought = st.builds(
    lambda text, sealed: reasoning(
        "x", text, **({} if sealed else {"encrypted_content": None})
    ),
    st.text(max_size=10),
    st.booleans(),
)
arguments = st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
calls = arguments.map(lambda given: call("x", json.dumps(given)))
words = st.one_of(spoken_items, thought, st.just(search("x")))
spoken = st.lists(words, max_size=5)
round_of_tools = st.builds(
    lambda items, last: [*items, last], st.lists(words | calls, max_size=5), calls
)


def _named(rounds: list[list[Item]]) -> list[list[Item]]:
    """Give every item ids of its own."""
    count = 0
    named: list[list[Item]] = []
    for items in rounds:
        named.append([])
        for item in items:
            count += 1
            ids = {"id": f"{item['type']}_{count}"}
            if is_call(item):
                ids["call_id"] = f"call_{count}"
            named[-1].append({**item, **ids})
    return named


@settings(max_examples=200)
@given(st.lists(round_of_tools, max_size=3), spoken)
def test_any_run_is_replayed_as_it_came(
    host_functions: HostFunctions,
    tool_rounds: list[list[Item]],
    last: list[Item],
) -> None:
    named = _named([*tool_rounds, last])
    rounds = [run_of(*items) for items in named]

    assert sent_next(host_functions, rounds) == expected(rounds)
    # An answer of which the host gives nothing back is no answer to a stored output.
    if any(is_call(item) or message_text(item) for items in named for item in items):
        sent = sent_next(host_functions, rounds, "output")
        assert sent == expected(rounds, "output")


lines = st.lists(
    st.sampled_from(["Be brief.", "It is noon.", "It is one.", "He likes herring."]),
    min_size=1,
    unique=True,
)
questions = st.builds(
    Question,
    words=st.sampled_from(["", "Weather?", "and again", "Weather?\nIn Bern?"]),
    context=st.sampled_from(["", "<context>\nIt rains.\n</context>", "Weather?"]),
    note=st.sampled_from(["", "<attached_files>\n</attached_files>\n\n"]),
    pictures=st.integers(0, 2),
    instructions=lines.map("\n".join),
)
answers = st.tuples(st.lists(round_of_tools, max_size=2), spoken)


@settings(max_examples=100)
@given(st.lists(st.tuples(questions, answers), min_size=2, max_size=4))
def test_any_chat_is_a_growing_prefix(
    host_functions: HostFunctions,
    turns: list[tuple[Question, tuple[list[list[Item]], list[Item]]]],
) -> None:
    given_rounds = [[*rounds, last] for _, (rounds, last) in turns]
    named = iter(_named([items for rounds in given_rounds for items in rounds]))
    runs = [[run_of(*next(named)) for _ in rounds] for rounds in given_rounds]

    assert_prefixes(
        host_functions,
        [(question, run) for (question, _), run in zip(turns, runs, strict=True)],
    )


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(questions, st.sampled_from(SIMULATED)),
        min_size=2,
        max_size=5,
        unique_by=itemgetter(1),
    )
)
def test_chats_of_streams_are_growing_prefixes(
    host_functions: HostFunctions, turns: list[tuple[Question, Stream]]
) -> None:
    called: set[str] = set()
    runs: list[tuple[Question, list[list[RunEvent]]]] = []
    for question, stream in turns:
        rounds = [run_of_chunks([wire]) for wire in stream.rounds()]
        items = [item for events in rounds for item in told_items(events)]
        sent = [replayed for item in items for replayed in replay_items(item)]
        ids = {str(item["call_id"]) for item in sent if is_call(item)}
        if not called & ids:  # a chat in which two calls have one id does not exist
            called |= ids
            runs.append((question, rounds))

    assert_prefixes(host_functions, runs)
