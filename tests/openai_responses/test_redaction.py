"""No secret comes through, in whatever form it travels; the rest stays readable."""

import html
import json
import tracemalloc
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openai_responses.redaction import (
    describe_exception,
    header_secrets,
    hide_keys,
    hide_paths,
    redact,
    redact_beginning,
    redact_line,
    redact_words,
)

KEY = "sk-canary-7c1e5f"
WHOLE_KEY = f"sk-proj-{'Ab1_-' * 10}"
OTHER_KEYS = [
    *(begin + "Ab1" * 14 for begin in ("xai-", "gsk_", "pplx-", "hf_", "csk-")),
    "AIza" + "aB-1_" * 7,
]
"""Of xAI, Groq, Perplexity, Hugging Face, Cerebras and Google."""
ODD = 'p+ä/"?w d'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"the key {KEY}.", "the key [redacted]."),
        (f"({KEY}, next)", "([redacted], next)"),
        ("provided: sk-simul***********ry-1. See", "provided: [redacted]. See"),
        ("API key provided: ab******yz. See", "API key provided: [redacted] See"),
        ("using Bearer abc.def-123/=, and", "using Bearer [redacted], and"),
        ("BEARER%20abcdef1234 x", "BEARER%20[redacted] x"),
        ("a Basic dXNlcjpwYXNz header", "a Basic [redacted] header"),
        ("api-key: 0123456789abcdef here", "api-key: [redacted] here"),
        ("X-API-Key=0123456789abcdef", "X-API-Key=[redacted]"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": "[redacted]", "n": 1}'),
        ("password='hunter 2' x", "password='[redacted]' x"),
        ("password=hunter 2", "password=[redacted] 2"),
        ('"client_secret":"abc"', '"client_secret":"[redacted]"'),
        ("refresh_token=abc&x=1", "refresh_token=[redacted]&x=1"),
        ("Authorization: Digest a=1, b=2\nnext", "Authorization: [redacted]\nnext"),
        ("-H 'Authorization: Token abc' -v", "-H 'Authorization: [redacted]' -v"),
        ("{'Authorization': 'Token abc'}", "{'Authorization': '[redacted]'}"),
        (r"{\"Authorization\": \"Token a\"}", r"{\"Authorization\": \"[redacted]\"}"),
        ("(b'Proxy-Authorization', b'T a')", "(b'Proxy-Authorization', b'[redacted]')"),
        ("Set-Cookie: a=b; Path=/\r\nX: 1", "Set-Cookie: [redacted]\r\nX: 1"),
        (r"Cookie: a=b; c=d\r\nX: 1", r"Cookie: [redacted]\r\nX: 1"),
        ("cookies=['a=b']", "cookies=['[redacted]']"),
        ("http://me:pa@ss@host:1/x", "http://[redacted]@host:1/x"),
        ("socks5://token@host", "socks5://[redacted]@host"),
        ("/x?key=abc&n=1", "/x?key=[redacted]&n=1"),
        ("/x?n=1&access_token=abc#top", "/x?n=1&access_token=[redacted]#top"),
        ("eyJhbGciOiJI.eyJzdWIi.SflKxw x", "[redacted] x"),
        (f"gAAAAA{'Bx-_' * 20}== x", "[redacted] x"),
        ('"encrypted_content":"short"', '"encrypted_content":"[redacted]"'),
        (f"ghp_{'a1' * 18}", "[redacted]"),
        *((f"({key})", "([redacted])") for key in OTHER_KEYS),
    ],
)
def test_secret_is_replaced_and_its_name_kept(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a task-force of sk-ill, disk-usage-report",
        "xai-grok-4-fast-reasoning-of-the-whole-company, hf_space, AIzawa",
        "Basic understanding, a bearer of news",
        "max_output_tokens: 5, prompt_cache_key is set",
        "https://example.com/a@b?mail=me@example.com",
        "Authorization is required; cookies are off",
        "gpt-6.1-sol: 3 input items, stream, kept, native",
        "input[3].content[0].text",
        '{"input_tokens": 12, "request_id": "01KAB2C3D4E5F6G7H8J9KAMBNC"}',
    ],
)
def test_ordinary_text_is_not_redacted(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "secret", [KEY, "tuesday afternoon", ODD, "пароль", "a\ud800bcdef"]
)
def test_every_form_of_a_known_secret(secret: str) -> None:
    raw = secret.encode("utf-8", "surrogatepass")
    forms = [
        secret,
        secret.upper(),
        quote(raw),
        quote(raw, safe=""),
        quote_plus(raw),
        html.escape(secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(quote(raw, safe="")),  # an address in the query of another one
        html.escape(secret).replace("&#x27;", "&#39;"),  # Go
        json.dumps(secret, ensure_ascii=False)[1:-1].replace("&", r"\u0026"),
        json.dumps(secret, ensure_ascii=False)[1:-1].replace("/", r"\/"),  # PHP
    ]

    for form in forms:
        assert redact(f"<{form}>", [secret]) == "<[redacted]>"


@pytest.mark.parametrize("user", ["", "u", "us", "änne"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_a_known_password_inside_base64(
    user: str, encode: Callable[[bytes], bytes]
) -> None:
    """Whatever user name is in front of it; a few bits at the seams remain."""
    pair = encode(f"{user}:correct horse??>>".encode()).decode().replace("=", "")

    left = redact(f"<{pair}>", ["correct horse??>>"])

    assert "[redacted]" in left
    assert len(left.replace("[redacted]", "")) <= len(user) * 2 + 8


@pytest.mark.parametrize(
    ("text", "secrets", "expected"),
    [
        ("tuesday2024", ["tuesday", "tuesday2024"], "[redacted]"),
        # A key that was pasted with a line break is sent without it.
        ("wednesday", [" wednesday\n"], "[redacted]"),
        # Short ones would be found in ordinary words.
        ("abcde is a word", ["", "a", "abcde", "  abcde  "], "abcde is a word"),
        # A capital I with a dot becomes two signs.
        ("\u0130\u0130 TUESDAY x", ["tuesday"], "\u0130\u0130 [redacted] x"),
    ],
    ids=["longest", "spaces", "short", "letters that grow in lower case"],
)
def test_known_secrets_in_a_text(text: str, secrets: list[str], expected: str) -> None:
    assert redact(text, secrets) == expected


WORDS = """
    sk- abcdef1 eyJ . gAAAA Authorization : = " ' \\ \\n [redacted] [red acted] cookie
    api-key http :// me:pw @ / ? & token= b' ( [ , password encrypted_content _ - ä
"""
SPACED = ["Bearer ", "Basic ", ": ", "\n", " ", "x" * 25, "\ud800"]
PIECES = [*WORDS.split(), *SPACED]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text()
KNOWN = st.lists(
    st.sampled_from([KEY, "redacted", "[redac", "acted]", "abcdef", "ization: "])
)


@given(TEXTS, KNOWN)
@example("abcdef[sk-abcdef1", ["abcdef["])
@example('Authorization: \\"x', [])
def test_a_second_time_changes_nothing(text: str, secrets: list[str]) -> None:
    once = redact(text, secrets)

    assert redact(once, secrets) == once


@given(TEXTS, TEXTS, st.sampled_from([KEY, "tuesday afternoon", ODD]))
def test_a_known_secret_is_gone_wherever_it_stands(
    before: str, after: str, secret: str
) -> None:
    assert secret not in redact(f"{before}{secret}{after}", [secret])


@given(TEXTS)
def test_a_key_is_gone_wherever_a_word_can_begin(before: str) -> None:
    assert KEY not in redact(f"{before} {KEY}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("first\r\nsecond\x85third", r"first\nsecond\nthird"),
        ("\x1b]52;c;ZXZpbA==\x07", r"\x1b]52;c;ZXZpbA==\x07"),
        ("left\u202eright\ud800", r"left\u202eright\ud800"),
        ("a\tb", r"a\tb"),
        ("Grüße, 世界 🙂", "Grüße, 世界 🙂"),
        ("key-of-mine\n", "[redacted]"),
    ],
    ids=["ends of lines", "escape sequence", "unseen", "tab", "words", "secret"],
)
def test_a_line_of_a_log_is_one_line_of_text(text: str, line: str) -> None:
    """Whoever wrote it: no second line, nothing that a terminal obeys."""
    assert redact_line(text, ["key-of-mine"]) == line


def test_words_for_people_are_one_line_without_secrets() -> None:
    """Lines are joined last, because some secrets end with theirs."""
    text = "Cookie: a=b; c=d\n  Ask\tagain.\x1b\r\n"
    assert redact_words(text) == r"Cookie: [redacted] Ask again.\x1b"
    assert header_secrets("Bearer abc def") == ["Bearer abc def", "abc", "def"]
    assert header_secrets("") == [""]


def test_of_a_foreign_exception_its_place_is_told() -> None:
    """Its words may be anybody's."""

    def read() -> None:
        int("hunter2")

    with pytest.raises(ValueError, match="hunter2") as caught:
        read()

    line = read.__code__.co_firstlineno + 1
    assert describe_exception(caught.value) == f"ValueError at line {line} in read"
    assert describe_exception(KeyError("hunter2")) == "KeyError at nowhere"


def test_secrets_of_users_leave_nothing_in_memory() -> None:
    """`re` would keep 512 patterns of 100 kB, each with the key of somebody."""
    redact("a line", ["sk-0" + "0" * 1_900])
    tracemalloc.start()
    try:
        for number in range(50):
            redact("a line", [f"sk-{number}" + "a0-_" * 475])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 100_000


ROOTS = ["/app/backend", "/usr/local", "/app", "C:\\Python", "", "/srv", "/srv/a b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'/app/backend/data/a b.csv'", "'[path]/a b.csv'"),
        ("in /usr/local/lib/x.py, line 3", "in [path]/x.py, line 3"),
        ("/app/backend/data/", "[path]/data"),
        ("/app/backend:/usr/local", "[path]/backend:[path]/local"),
        ("file:///app/x.txt", "file://[path]/x.txt"),
        (r"C:\Python\Lib\x.py, c:/python", "[path]/x.py, [path]/python"),
        ("/APP/x (1)", "[path]/x (1)"),
        ("It is in /app.", "It is in [path]/app."),
        ("/application/x /app.log /app-2", "/application/x /app.log /app-2"),
        ("https://host/app/x /data/app/x", "https://host/app/x /data/app/x"),
        ("https://app/x //app/x", "https://app/x //app/x"),
        ("./app/x ~/app/x", "./app/x ~/app/x"),
        ("no path", "no path"),
        ("/srv/a b/data/x.csv", "[path]/x.csv"),
    ],
)
def test_path_of_the_server_keeps_its_last_name(text: str, expected: str) -> None:
    """Paths of others stay: the model may have named them."""
    assert hide_paths(text, ROOTS) == expected
    assert hide_paths(text, [""]) == text


def test_paths_are_read_in_linear_time() -> None:
    """Also long ones, and what looks like many beginnings."""
    assert hide_paths("/app" * 50_000 + "/x", ROOTS).endswith("/x")
    assert hide_paths("/app/" + "a/" * 50_000, ROOTS) == "[path]/a"


LONG_SECRET = "Zq7-very-secret-value-0123456789"


@pytest.mark.parametrize("hidden", [1, 6, 16, len(LONG_SECRET) - 1])
@pytest.mark.parametrize(
    ("long", "begin"),
    [(0, "p" * 1_000), (5_000, "Bearer [redacted] p"), (12_500, "")],
)
def test_the_end_of_what_is_read_shows_no_half_of_a_secret(
    hidden: int, long: int, begin: str
) -> None:
    """Whoever chooses the words in front of a secret would choose how much is shown.

    Behind a long one, which becomes short, the end of what is read is near.
    """
    read = 1_000 + 12_000  # the limit, and twice the longest secret
    before = "Bearer " + "a" * long + " " if long else ""
    filler = "p" * (read - len(before) - len(LONG_SECRET) + hidden)
    text = before + filler + LONG_SECRET + "z" * 100

    shown = redact_beginning(text, 1_000, partial(redact, secrets=[LONG_SECRET]))

    assert LONG_SECRET[:6] not in shown
    assert len(shown) <= 1_000
    assert shown.startswith(begin)
    # A text that is read whole keeps its end.
    whole = redact_beginning(
        f"p {LONG_SECRET} end", 99, partial(redact, secrets=[LONG_SECRET])
    )
    assert whole == "p [redacted] end"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"the entry {WHOLE_KEY} is none", "the entry [redacted] is none"),
        (f"`{WHOLE_KEY[:40]}`", "`[redacted]`"),
        (f"x, eyJ{'a' * 20}.{'b' * 20}", "x, [redacted]"),
        *((f"`{key}`", "`[redacted]`") for key in OTHER_KEYS),
        ("`sk-gpt-5`, api_key: `x`, task-gpt-5.2-of-the-whole-team", ""),
        ("xai-grok-4-fast-reasoning-of-the-whole-company", ""),
    ],
)
def test_message_about_a_setting_has_no_whole_key(text: str, shown: str) -> None:
    """And stays as it is: nothing else in it is a secret."""
    assert hide_keys(text) == (shown or text)
