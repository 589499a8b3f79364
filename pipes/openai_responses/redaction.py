"""Removes secrets from text: known values, then what looks like a secret.

Text that is already `[redacted]` is left alone. No rule may look back past a character
that another rule can take, and none may end in front of a letter or digit, so a second
pass finds nothing new. What repeats without limit is possessive, or starts with a
character that it cannot repeat, so the time is linear.
"""

import html
import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from traceback import extract_tb
from urllib.parse import quote, quote_plus

_REDACTED = "[redacted]"

_SHORTEST_SECRET = 6

_SPACE = r"[^\S\r\n]*+"
_NAME_ENDS = rf"""["'\\]*+{_SPACE}(?:[:=]|,(?={_SPACE}b?["'])){_SPACE}"""
_VALUE_OPENS = r"""(?:b(?=["'])|["'\\(\[])*+"""
_ASSIGNED = _NAME_ENDS + _VALUE_OPENS

_OTHER_KEYS = (
    r"(?<![A-Za-z0-9])(?:(?:xai-|gsk_|pplx-|hf_|csk-)[A-Za-z0-9]{30,}+|AIza[\w-]{30,}+)"
)
"""Keys of xAI, Groq, Perplexity, Hugging Face, Cerebras and Google. They are longer than
the words in a model's name, which may begin alike."""
_LOOKS_SECRET = re.compile(
    "|".join(
        [
            # Authorization: Bearer sk-..., {"cookie": "a=b; c=d"}
            rf"(?P<header>(?:authorization|cookies?){_ASSIGNED})"
            r"""[^\s"'\\](?:[^\r\n"'\\]|\\[^"'nr\r\n])*+""",
            # api_key=..., "client_secret": "...", Incorrect API key provided: sk-...
            r"(?P<name>(?:api[-_ ]?key(?:\ provided)?|client[-_]?secret|passw(?:or)?d|"
            r"(?:access|auth|refresh|session)[-_]?token|encrypted_content)"
            rf"""{_ASSIGNED})(?:(?<=["'])[^\r\n"'\\]++|[^\s"'\\&,;)}}\]>]++)""",
            # https://host/path?access_token=...&sig=...
            r"(?P<query>[?&][\w.-]{0,32}?(?:key|token|secret|password|signature|sig)=)"
            r"""[^\s"'\\&#;)}\]>]++""",
            # https://user:password@host
            r"(?P<scheme>://)[^\s/?#\"'<>]*@",
            # The two schemes on their own, as in a message about a header.
            r"(?P<bearer>bearer(?:\s|%20){1,4})[A-Za-z0-9._~+/=*-]{6,}+",
            r"(?P<basic>basic\s{1,4}(?-i:(?=[A-Za-z]*+[0-9+/=]|[A-Za-z]*?[a-z][A-Z])))"
            r"[A-Za-z0-9+/]{8,}+={0,2}",
            # Keys of OpenAI and GitHub, by how they begin; they may be masked with stars.
            r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_)[A-Za-z0-9_*-]{6,}+",
            _OTHER_KEYS,
            # A JSON Web Token, with its signature or without.
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{4,}+"
            r"(?:\.[A-Za-z0-9_-]*+)?",
            # Encrypted reasoning, and what Fernet encrypts.
            r"gAAAA[A-Za-z0-9_-]{20,}+={0,2}",
        ]
    ),
    re.IGNORECASE,
)
"""What looks like a secret.

- The value of a header goes on to the end of the line or of the quotes, that of another
  name (`name`) is one word or in quotes; then parameters of a query (`query`).
- `Basic` is a word, too: base64 has digits, or a capital inside a word.
- A JSON Web Token begins with `{"` in base64, a Fernet token with its version and the
  first bytes of a time, which are zero until 2106.
"""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with `[redacted]` in place of `secrets` and of what looks like one.

    Secrets of less than six characters are ignored: usual words contain them.
    """
    known: set[str] = set()
    for secret in secrets:
        known.update(_forms(secret.strip()))
    for form in sorted(known, key=_longest_first):
        parts = [_redact_text(part, form) for part in text.split(_REDACTED)]
        text = _REDACTED.join(parts)
    parts = [_LOOKS_SECRET.sub(_keep_name, part) for part in text.split(_REDACTED)]
    return _REDACTED.join(parts)


_WHOLE_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_|eyJ|gAAAA)[\w-]{20,}+"
    rf"(?:\.[\w-]++)*+|{_OTHER_KEYS}"
)


def hide_keys(text: str) -> str:
    """Return `text` with `[redacted]` in place of whole keys; nothing else changes.

    What administrators paste into the wrong setting is in messages and names. A shorter
    text may be a name: that of a deployment can begin with `sk-`.
    """
    return _WHOLE_KEY.sub(_REDACTED, text)


_LONGEST_SECRET = 6_000
"""Characters; a key has at most 2,000, which an address writes as up to three each."""


def redact_beginning(text: str, characters: int, hide: Callable[[str], str]) -> str:
    """Return at most so many `characters` of what `hide` makes of a text.

    Of a long text only the beginning is read. Where that ends half a secret may be
    left, which no rule knows, and long secrets in front of it make the text shorter: so
    the end of what was read is never shown.
    """
    read = text[: characters + 2 * _LONGEST_SECRET]
    shown = hide(read)
    if len(read) < len(text):
        shown = shown[:-_LONGEST_SECRET]
    return shown[:characters]


def _longest_first(form: str) -> tuple[int, str]:
    return -len(form), form


def _redact_text(text: str, secret: str) -> str:
    """Replace a secret in any case.

    No pattern is made of it: `re` keeps the last 512 of a process, in which the keys of
    users would stay, with some 100 kB for each long one.
    """
    folded = _fold_case(text)
    wanted = _fold_case(secret)
    pieces: list[str] = []
    done = 0
    start = folded.find(wanted)
    while start >= 0:
        pieces += [text[done:start], _REDACTED]
        done = start + len(wanted)
        start = folded.find(wanted, done)
    return "".join([*pieces, text[done:]])


def _fold_case(text: str) -> str:
    """Return a text in lower case, in which each character stays one character."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(sign.lower()[:1] for sign in text)


def header_secrets(value: str) -> list[str]:
    """Return a header's value and its further words, like the key after `Bearer`."""
    return [value, *value.split()[1:]]


def redact_line(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` redacted and as one line of printable characters, for a log."""
    return _printable("\\n".join(redact(text, secrets).splitlines()))


def redact_words(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` redacted and as one line for people, who read no `\\n`.

    Lines are joined last: some secrets end with their line.
    """
    return _printable(" ".join(redact(text, secrets).split()))


def _printable(line: str) -> str:
    # Without the quotes that `ascii` adds.
    shown = [sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line]
    return "".join(shown)


def hide_paths(text: str, roots: Iterable[str]) -> str:
    """Return `text` with only the last name of each path below one of the `roots`.

    A path ends at a space or a quotation mark, so the name of a file may lose its end.
    """
    longest_first = sorted((root for root in roots if root), key=_longest_first)
    if not longest_first:
        return text
    # A path in quotation marks has each backslash twice.
    below = "|".join(
        re.escape(root[0])
        + r"[/\\]++".join(re.escape(name) for name in re.split(r"[/\\]", root[1:]))
        for root in longest_first
    )
    # `/app` is a root, but not in https://host/app, in /application or in /app.log.
    pattern = (
        rf"(?:(?<![\w.~/\\-])|(?<=file://))(?:{below})(?![\w-]|\.\w)"
        r"(?:[/\\]++[^\s/\\\"'`<>()\[\],;:]*+)*+"
    )

    def keep_last_name(match: re.Match[str]) -> str:
        names = [name for name in re.split(r"[/\\]", match.group()) if name]
        return f"[path]/{names[-1]}"

    return re.sub(pattern, keep_last_name, text, flags=re.IGNORECASE)


def describe_exception(error: BaseException) -> str:
    """Return type and place of an exception; its text may quote a header or a prompt."""
    frames = extract_tb(error.__traceback__)
    name = type(error).__name__
    if not frames:
        return f"{name} at nowhere"
    last = frames[-1]
    return f"{name} at line {last.lineno} in {last.name}"


def _keep_name(match: re.Match[str]) -> str:
    """Return what takes the place of a match; the name in front of a value stays."""
    name = match[match.lastgroup] if match.lastgroup else ""
    end = "@" if match.lastgroup == "scheme" else ""
    return f"{name}{_REDACTED}{end}"


def _forms(secret: str) -> Iterator[str]:
    """Yield `secret` as it appears in headers, addresses, JSON, pages and base64."""
    if len(secret) < _SHORTEST_SECRET:
        return
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield quote(raw)
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield quote(quote(raw, safe=""))
    yield html.escape(secret)
    yield html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield json.dumps(secret, ensure_ascii=True)[1:-1]
    as_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    yield as_json
    yield as_json.replace("/", r"\/")  # PHP
    yield as_json.translate(_ESCAPES_OF_GO)
    # The password of a `Basic` header follows a user name of unknown length: only the
    # characters count that `raw` alone decides when `offset` bytes precede it.
    for offset in range(_BYTES_OF_BASE64_GROUP):
        first_bit = offset * _BITS_OF_BYTE
        end_bit = (offset + len(raw)) * _BITS_OF_BYTE
        first = math.ceil(first_bit / _BITS_OF_BASE64_CHARACTER)
        end = end_bit // _BITS_OF_BASE64_CHARACTER
        encoded = b64encode(bytes(offset) + raw).decode()[first:end]
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


_ESCAPES_OF_GO = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"}
"""In JSON; its pages have the marks of quotations as numbers."""
_BYTES_OF_BASE64_GROUP = 3
_BITS_OF_BYTE = 8
_BITS_OF_BASE64_CHARACTER = 6
