"""What a refusal names: a place in the request, a parameter, ids, tools, efforts.

The server names a place in `param`. Gateways hide it and repeat the API's words, so the
words are read, too (docs/reference/responses-api.md, "Finding the refused part"). But
the API quotes what it refuses: an image's address, the name of a tool, a key of a
schema. What anybody can write into a request must not decide what is repaired, so
nothing is believed of the words that the request itself could have said: `OwnTexts`.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote

from openai_responses.appended import declared_tools
from openai_responses.errors import NUMBER_AFTER_DOT, ApiError
from openai_responses.items import (
    ADDED_TOOLS,
    Item,
    content_parts,
    has_web_scheme,
    inner_parts,
    item_type,
    tool_name,
)
from openai_responses.json_input import as_list, as_text, value_at
from openai_responses.tool_kinds import CALLED_BY_NAME

_MAX_MESSAGE = 8000
"""Characters of a message that are read."""
_MAX_OWN_CHARACTERS = 64_000_000
_MAX_OWN_TEXTS = 500_000
_MAX_DECODED = 1_000_000
"""Of a larger request no words are believed. Texts with the signs of `_ESCAPING` are also
decoded, for each candidate once more: 8 MB of `&a` took 2 to 4 s."""
_ESCAPING = "%\\&"
_MAX_PATH = 200
"""Characters of a parameter's path."""
_MAX_CANDIDATES = 3
"""Places in the words that are compared with the request; one is usual."""

# input[3].content[0].image_url, tools[5].parameters
_LIST_AND_NUMBER = r"(input|tools)\[(\d{1,6})\]"
_PATH_IN_LIST = r"((?:\.\w{1,64}|\[\d{1,6}\]){0,12})"
_NAMED_PLACE = re.compile(_LIST_AND_NUMBER + _PATH_IN_LIST)
_PLACE_IN_WORDS = re.compile(r"(?<![\w.\])}/$>-])" + _LIST_AND_NUMBER + _PATH_IN_LIST)
"""After a name, a dot or a bracket is the end of another path."""
_DECLARATION_IN_WORDS = re.compile(
    r"(\btools\[\d{1,4}\]\.function_declarations)\[(\d{1,6})\]"
)
"""What Google names a function by, behind a gateway: all functions are one tool there
(`tools[0].function_declarations[24].parameters`)."""
_ENDS_LIKE_A_PLACE = re.compile(r"\W(?:input|tools)(?:\[\d*)?\Z")
"""A text that the server could complete: it writes a number after a key."""
_MAX_END_OF_PLACE = 20
"""Characters of a text in which it is looked for: a sign, the name, some digits."""
_ESCAPED = re.compile(r"(?<!\\)\\+(?:u00|x)([0-9a-fA-F]{2})")
"""Begins with the first backslash: from each of many the rest would be read again."""

_NAME = r"([a-z_]{2,40}(?:\.[a-z_]{2,40})?)"
_PARAMETER_IN_WORDS = re.compile(
    r"\b(?:unknown|unsupported|unrecognized|unexpected|invalid)"
    r"(?: request)? (?:parameter|argument|field|key)s?(?: supplied)?:? "
    rf"[\"'`]{_NAME}[\"'`]"
    # OpenAI's and Azure's older one has no quotation marks.
    rf"|\bunrecognized request arguments? supplied: {_NAME}(?=[\s.,]|\Z)"
    # Anthropic, of a model that thinks, and of two that exclude each other; Kimi.
    rf"|`{_NAME}` may only be set to \d|`temperature` and `{_NAME}` cannot both be"
    rf"|\binvalid {_NAME}: only \d"
    # Groq (Alishahryar1/free-claude-code 1348), DashScope (VicBilibily/GCMP 384);
    # gateways; Volcengine.
    rf"|[`']{_NAME}[`'] must be one of\b|\A{_NAME} must be one of\b"
    rf"|\bparameter [\"'`]{_NAME}[\"'`] is not supported"
    # OpenAI in Chat Completions, behind Copilot (kaitranntt/ccs 344).
    rf"|\bunsupported value: '{_NAME}' does not support\b"
    rf"|\bparameter `{_NAME}` specified in the request (?:is|are) not valid",
    re.IGNORECASE,
)
"""OpenAI's own sentences, which gateways repeat, and others about a value."""
_PATH_IN_FRONT = re.compile(r"([a-z_]{2,40}(?:\.\w{1,64}){0,12}): ")
"""How servers of Node.js begin that tell what Zod found as a text (OpenClaw 2026.9)."""
_LACKING_PARAMETER = re.compile(
    # Codex's own server, and gateways to it (router-for-me/CLIProxyAPI 3577); a small
    # server (carloslfu/slotstream 19).
    rf"\bunsupported (?:parameter|request field)s?(?:\(s\))?: {_NAME}(?=[\s,]|\Z)"
    # Fireworks (anomalyco/opencode 4386), Groq (fanenr/chatbot 21).
    rf"|\bextra inputs are not permitted, field: '{_NAME}'"
    rf"|\bproperty '{_NAME}' is unsupported|[\"'`]{_NAME}[\"'`] not permitted\b"
    # xAI of a model (earendil-works/pi 8381); LiteLLM, with a list; DeepSeek.
    rf"|\bdoes not support (?:the )?parameters?:? (?:[\[{{]?[\"'`])?{_NAME}"
    rf"|\bdon't support {_NAME}="  # LiteLLM, of a value
    rf"|\bargument not supported(?: on this model)?: {_NAME}"
    # Cohere; Bedrock; Google; Anthropic, of a field and of a model.
    rf"|\bunknown field: {_NAME}|\bextraneous key \[{_NAME}\]"
    rf"|\bunknown name \"{_NAME}\"|\A{_NAME}: extra inputs are not permitted"
    rf"|\A`{_NAME}` is (?:deprecated|not supported) for this model"
    # Databricks (leonardovida/duckdb-ai 85); Zod 3 (musistudio/claude-code-router 1410);
    # checks of a schema (openai/openai-node 1161), and of arguments, in Python.
    rf"|\bdoes not support the [\"'`]?{_NAME}[\"'`]? parameter\b"
    rf"|\bunrecognized key\(s\) in object: '{_NAME}'"
    rf"|\badditional properties are not allowed \('{_NAME}'"
    rf"|\bgot an unexpected keyword argument '{_NAME}'"
    # respan-gateway (0.3.0), of a tool's field, too.
    rf"|[\"'`]{_NAME}[\"'`](?: in the request)? cannot be translated to another format"
    # Moonshot, of a gateway's own switch next to it (HKUDS/nanobot 3939).
    rf"|\bcannot specify both 'thinking' and '{_NAME}'",
    re.IGNORECASE,
)
"""What servers say that do not know a parameter, whatever its value."""
_REASONING_VALUE = re.compile(
    r"\binvalid (reasoning value)\b|\b(reasoning_effort)=\S{1,20} is not supported"
    r"|\b(output_config\.effort) '\w{1,20}' is not supported"
    r"|\bfunction tools with (reasoning_effort) are not supported"
    r"|\binvalid combination of (reasoning_effort) and thinking type\b",
    re.IGNORECASE,
)
"""What Ollama, vLLM of gpt-oss and Anthropic say of an effort before they name theirs;
OpenAI in Chat Completions (aaif-goose/goose 9825); Volcengine, next to a gateway's own
switch (RooCodeInc/Roo-Code 11395)."""
_LISTED_VALUES = re.compile(
    r"\b(?:supported values are|must be one of): ((?:\w{1,20}, ){1,10}\w{1,20})", re.I
)
"""A list without quotation marks."""
_OTHER_NAMES = {
    "reasoning_effort": "reasoning.effort",
    "reasoningeffort": "reasoning.effort",
    "reasoning value": "reasoning.effort",
    "output_config.effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""Names that parameters have elsewhere, such as in Chat Completions."""
_PARAMETER_IN_LOC = re.compile(
    r"'loc': \('body', '([a-z_]{2,40})'(?:, '([a-z_]{2,40})')?\)"
)
"""What pydantic writes, which servers of vLLM's kind use."""
_PARAMETER_IN_PRINT = re.compile(rf"\bvalidation errors? for \w{{1,64}}\n{_NAME}\n")
"""What pydantic prints of a body (Cerebras, egoist/chatwise-releases 1325)."""
_PARAMETERS_IN_WORDS = (
    _PARAMETER_IN_WORDS,
    _PARAMETER_IN_LOC,
    _PARAMETER_IN_PRINT,
    _LACKING_PARAMETER,
    _REASONING_VALUE,
)

# "Invalid schema for function 'get_weather'", "Hosted tool 'web_search' is not supported"
_QUOTED_NAME = r"[\"'`]([\w.-]{1,64})[\"'`]"
_VALUE_IN_WORDS = re.compile(
    rf"\b(?:unsupported )?value:? {_QUOTED_NAME} is not (?:supported with the|one of)\b",
    re.IGNORECASE,
)
"""What the API says, and gateways repeat without the parameter, or with a masked one
(anomalyco/opencode 4451, Laisky/one-api 285); checks of a schema."""
_PARAMETERS_WITH_WORDS = ("reasoning.effort", "reasoning.summary", "text.verbosity")
_FUNCTION_IN_WORDS = re.compile(
    # DashScope, of a function that has the name of one of its own tools.
    rf"\bfunction:? {_QUOTED_NAME}|\btool names are not allowed to be \[([\w.-]{{1,64}})\]",
    re.IGNORECASE,
)
_HOSTED_TOOL_IN_WORDS = re.compile(
    # Copilot, of a hosted tool (caozhiyuan/copilot-api 220); Codex's own server.
    rf"\btool(?: type)?:? {_QUOTED_NAME}|\brequested tool ([\w.-]{{1,64}}) is not supported"
    r"|\bunsupported tool type: ([\w-]{1,64})"
    # OpenAI, of a hosted tool in Chat Completions; LiteLLM leaves out the place
    # (langchain-ai/langchain-litellm 197). Volcengine has none.
    rf"|\binvalid value: {_QUOTED_NAME}[.,] supported values are: ['`]function['`]",
    re.IGNORECASE,
)
_SERVER_IN_WORDS = re.compile(rf"\bserver:? {_QUOTED_NAME}", re.IGNORECASE)
_VECTOR_STORE = re.compile(r"\bvs_[\w-]{2,128}")
_ID_IN_WORDS = re.compile(r"[\w-]{5,128}")
_QUOTED = re.compile(_QUOTED_NAME)
_UNKNOWN = re.compile(
    r"unknown[ _](parameter|field|argument|key)|unrecogni[sz]ed|unexpected (field|key)"
    r"|extra_?(forbidden| inputs are not permitted| fields not permitted)"
    r"|additional properties",
    re.IGNORECASE,
)


_BETWEEN_KEYS = r"(?:\\[nrt]|\W){1,40}"
"""What is between two keys of a list, also in a text of JSON inside of JSON."""


class OwnTexts:
    """Every key and every text of a request, at every depth.

    The fields of the request itself are ours. The work is bounded: a request is walked
    once, and each of its texts is searched once for each of few candidates.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        """Collect the texts; a request that is too large could have said anything."""
        self._texts: list[str] = []
        self._is_complete = True
        left = _MAX_OWN_CHARACTERS
        decoded_left = _MAX_DECODED
        for text in _texts_in(payload.values()):
            self._texts.append(text)
            left -= len(text)
            if any(sign in text for sign in _ESCAPING):
                decoded_left -= len(text)
            if min(left, decoded_left) < 0 or len(self._texts) > _MAX_OWN_TEXTS:
                self._is_complete = False
                break

    def could_say(self, words: str) -> bool:
        """Say whether `words` may be a quote from the request, whole or cut off."""
        if not self._is_complete:
            return True
        return any(words in reading for reading in self._all_readings())

    def could_say_place(self, list_name: str, number: str) -> bool:
        """Say whether a place in the words may be a quote, or be completed from one."""
        if self.could_say(f"{list_name}[{number}"):
            return True
        for reading in self._all_readings():
            if _ENDS_LIKE_A_PLACE.search(reading[-_MAX_END_OF_PLACE:]):
                return True
        return False

    def could_say_parameter(self, path: str) -> bool:
        """Say whether a body in the request could name `path` as its `param`.

        Or as the `path` of one of Zod's issues, which lists its keys. A longer path than
        those of the API makes no pattern, because `re` keeps the last 512 patterns in
        memory.
        """
        if not self._is_complete or len(path) > _MAX_PATH:
            return True
        keys = re.findall(r"\w+", path)
        listed = _BETWEEN_KEYS.join(["path", *keys])
        named = re.compile(rf"param\W{{1,12}}{re.escape(path)}|{listed}")
        for text in self._texts:
            if not keys or keys[-1] not in text:
                continue
            for reading in _readings(text):
                if named.search(reading):
                    return True
        return False

    def _all_readings(self) -> Iterator[str]:
        """Yield all texts in all forms in which a server may show them."""
        for text in self._texts:
            yield from _readings(text)


def _texts_in(values: Iterable[object]) -> Iterator[str]:
    """Yield all texts and keys in JSON values, without recursion."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from (str(key) for key in value)
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


def _readings(text: str) -> Iterator[str]:
    """Yield a text as it is, and as a server shows it that decodes it.

    Addresses are read with their escapes, arguments of calls are JSON in a text.
    """
    yield text
    if "%" in text:
        yield unquote(text)
    if "\\" in text:
        yield _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    if "&" in text:
        yield html.unescape(text)


def _open_quote(words: str) -> str:
    """Return words without their last character, which may be the server's own.

    A server may quote a text and then close the quotation, so the closing mark is not
    searched in the request.
    """
    return words[:-1]


Payload = dict[str, Any]
"""The body of a request."""


class NamedItem(NamedTuple):
    """An item as it is sent, after the name of the one that it was made of."""

    name: str
    item: Item


class SentRequest(NamedTuple):
    """What was sent, and what it was made of."""

    payload: Payload
    """The body that was sent."""
    items: Sequence[NamedItem]
    """The items of its input, with their names; one that was added has none."""
    asked: Mapping[str, Any]
    """The body before repairs."""
    repairs: Sequence[object]
    """What was done to that body (`request_repairs.Repair`), in this order."""

    @property
    def last_name(self) -> str:
        """The name of the last item that has one."""
        return next((name for name, _ in reversed(self.items) if name), "")


class Place(NamedTuple):
    """A place that a refusal names, and the item or tool that is there."""

    list_name: str
    number: int
    path: str
    """What follows the number, like `.content[0].text`."""
    value: Item

    @property
    def keys(self) -> tuple[str, ...]:
        """The names in the path, without numbers."""
        return tuple(re.findall(r"\.(\w+)", self.path))

    @property
    def inner_tool(self) -> Item | None:
        """The tool of an item with tools, if the path leads to one."""
        match = re.match(r"\.tools\[(\d{1,6})\]", self.path)
        if match is None or item_type(self.value) != ADDED_TOOLS:
            return None
        tools = content_parts(self.value.get("tools"))
        number = int(match[1])
        return tools[number] if number < len(tools) else None


def outer_name(path: str) -> str:
    """Return the parameter that a path is in, like `include` of `include[1]`."""
    # Servers join the keys of a path with dots, brackets or slashes.
    return re.split(r"\W", path)[0]


class Refusal:
    """What a server said about a request that it refused."""

    def __init__(self, error: ApiError, sent: SentRequest) -> None:
        self.error = error
        self.sent = sent
        self.words = error.message[:_MAX_MESSAGE]

    @cached_property
    def _own(self) -> OwnTexts:
        return OwnTexts(self.sent.asked)

    @property
    def named_parameter(self) -> str:
        """What the server itself names in `param`, like a place or a parameter's path.

        Not what a body inside of its words names.
        """
        if self.error.is_relayed:
            return ""
        return self.error.param or ""

    @property
    def blames_what_was_not_sent(self) -> bool:
        """Whether `param` is a parameter that the request never had.

        Then a gateway has added it, or its server; the next one may not (of the backend
        of Codex four of five such requests are answered if they are sent again:
        NousResearch/hermes-agent 90257).
        """
        named = self.error.param or ""
        return named.isidentifier() and named not in self.sent.asked

    @property
    def is_unknown(self) -> bool:
        """Whether the server does not know what it names."""
        if self.error.code == "unknown_parameter":
            return True
        return bool(
            _UNKNOWN.search(self.words) or _LACKING_PARAMETER.search(self.words)
        )

    def says(self, phrase: str) -> re.Match[str] | None:
        """Return the first place of a pattern in the words, in any case."""
        return re.search(phrase, self.words, re.IGNORECASE)

    def is_own_phrase(self, phrase: str) -> bool:
        """Say whether a phrase of the words is the server's own, and no quote."""
        return not self._own.could_say(phrase)

    @cached_property
    def place(self) -> Place | None:
        """The item or tool that is named, by `param` or by words that are its own."""
        # Its beginning, `tools[0]`, would be read as the place of another tool.
        declared = _DECLARATION_IN_WORDS.search(self.words)
        if declared and not self._own.could_say(declared[1]):
            number = int(declared[2])
            functions = [
                Place("tools", index, "", tool)
                for index, tool in enumerate(as_list(self.sent.payload.get("tools")))
                if tool.get("type") == "function"
            ]
            return functions[number] if number < len(functions) else None
        match = (
            _NAMED_PLACE.fullmatch(self.named_parameter)
            or _NAMED_PLACE.fullmatch(self._path_in_front)
            or self._place_in_words()
        )
        if match is None:
            return None
        list_name = match[1]
        number = int(match[2])
        rows = as_list(self.sent.payload.get(list_name))
        if number >= len(rows):
            return None
        return Place(list_name, number, match[3], rows[number])

    @property
    def subject(self) -> str:
        """What the log calls the place: no one can count the items of a request."""
        place = self.place
        if place is None:
            return ""
        named = {"type": item_type(place.value), **place.value}
        return f"{place.list_name}[{place.number}] ({tool_name(named)}):"

    @property
    def has_named_place(self) -> bool:
        """Whether the server's own `param` names the place."""
        return _NAMED_PLACE.fullmatch(self.named_parameter) is not None

    def _place_in_words(self) -> re.Match[str] | None:
        """Return the first place in the words that the request could not have said.

        A `param` that names something else is more certain than words.
        """
        if self.named_parameter not in ("", "input", "tools"):
            return None
        words = self.words
        if self.error.is_relayed:
            words = f"{self.error.param or ''} {words}"
        candidates: dict[tuple[str, str], re.Match[str]] = {}
        for match in _PLACE_IN_WORDS.finditer(words):
            candidates.setdefault((match[1], match[2]), match)
            if len(candidates) == _MAX_CANDIDATES:
                break
        for (list_name, number), match in candidates.items():
            place = f"{list_name}[{number}]"
            is_foreign = self.error.is_relayed and self._own.could_say_parameter(place)
            if not is_foreign and not self._own.could_say_place(list_name, number):
                return match
        return None

    @cached_property
    def _path_in_front(self) -> str:
        """The path that the words begin with, if the request has it; else empty."""
        match = _PATH_IN_FRONT.match(self.words)
        if self.named_parameter or match is None:
            return ""
        is_sent = outer_name(match[1]) in self.sent.payload
        if not is_sent or self._own.could_say(match[0]):
            return ""
        return NUMBER_AFTER_DOT.sub(r"[\1]", match[1])

    @cached_property
    def parameter(self) -> str:
        """The path of the parameter that `param` or the words name; empty for none.

        A `param` may be a word for the server's own check, and the words the place.
        """
        named = self.named_path
        if outer_name(named) in self.sent.payload:
            return named
        in_words = self._parameter_in_words
        has_words = outer_name(in_words) in self.sent.payload
        return in_words if has_words or not named else named

    @property
    def named_path(self) -> str:
        """What `param` names, under the API's own name."""
        return _OTHER_NAMES.get(self.named_parameter, self.named_parameter)

    @property
    def _parameter_in_words(self) -> str:
        """The path of the parameter that the words name; empty for none."""
        relayed = (self.error.is_relayed and self.error.param) or ""
        if relayed and not self._own.could_say_parameter(relayed):
            return _OTHER_NAMES.get(relayed, relayed)
        match: re.Match[str] | None = None
        for pattern in _PARAMETERS_IN_WORDS:
            match = match or pattern.search(self.words)
        if match is None:
            return self._path_in_front or self._path_of_value()
        if self._own.could_say(_open_quote(match[0])):
            return ""
        path = ".".join(group for group in match.groups() if group)
        return _OTHER_NAMES.get(path.lower(), path)

    def _path_of_value(self) -> str:
        """Return the one parameter that has the value which the words refuse."""
        match = _VALUE_IN_WORDS.search(self.words)
        if match is None or self._own.could_say(_open_quote(match[0])):
            return ""
        paths = []
        for path in _PARAMETERS_WITH_WORDS:
            if value_at(self.sent.payload, *path.split(".")) == match[1]:
                paths.append(path)
        return paths[0] if len(paths) == 1 else ""

    @property
    def tools(self) -> Iterator[Item]:
        """The tools that the words name by what they are, one after the other."""
        functions = self._find_names(_FUNCTION_IN_WORDS)
        kinds = self._find_names(_HOSTED_TOOL_IN_WORDS)
        labels = self._find_names(_SERVER_IN_WORDS)
        named_stores = set(_VECTOR_STORE.findall(self.words))
        # A tool's own error, as `image_generation_user_error`.
        kind_of_tool, is_own, _ = (self.error.type or "").partition("_user_error")
        if is_own:
            kinds.add(kind_of_tool)
        for tool in declared_tools(self.sent.payload):
            kind = tool.get("type")
            is_named = kind in kinds or tool.get("server_label") in labels
            if kind in CALLED_BY_NAME:
                is_named = tool.get("name") in functions
            elif kind == "file_search":
                store_ids = as_list(tool.get("vector_store_ids"))
                own_stores = {str(store_id) for store_id in store_ids}
                is_named = is_named or bool(named_stores & own_stores)
            if is_named:
                yield tool

    def _find_names(self, pattern: re.Pattern[str]) -> set[str]:
        """Return the names after a noun that the request could not have said."""
        names: dict[str, str] = {}
        for match in pattern.finditer(self.words):
            names.setdefault(match[match.lastindex or 0], match[0])
            if len(names) == _MAX_CANDIDATES:
                break
        return {
            name
            for name, phrase in names.items()
            if not self._own.could_say(_open_quote(phrase))
        }

    @property
    def numbers_of_ids(self) -> Iterator[int]:
        """The numbers of the items that have an id which the words name."""
        named = set(_ID_IN_WORDS.findall(self.words))
        for number, row in enumerate(self.sent.items):
            ids = (row.item.get("id"), row.item.get("call_id"))
            if any(isinstance(own_id, str) and own_id in named for own_id in ids):
                yield number

    @property
    def numbers_of_addresses(self) -> Iterator[int]:
        """The numbers of the items with an image or a file whose address is named.

        OpenAI says so with its own fetching as the place: "Error while downloading
        https://...", param `url`.
        """
        for number, row in enumerate(self.sent.items):
            for part in inner_parts(row.item):
                address = as_text(part.get("image_url") or part.get("file_url"))
                if has_web_scheme(address) and address in self.words:
                    yield number

    @property
    def quoted_words(self) -> set[str]:
        """The single words that the message quotes, or lists as supported."""
        listed = _LISTED_VALUES.search(self.words)
        names = listed[1].split(", ") if listed else []
        return {*_QUOTED.findall(self.words), *names}
