"""Check the project's assumptions about the Responses API against the real one.

It takes the key from OPENAI_API_KEY, prints the maximum cost, asks, and writes a report
that can be attached to an issue: it contains no key, no id of an account and no answer
of a model.
"""

import argparse
import asyncio
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from live_cases import Case, list_cases

Item = dict[str, Any]
OPENAI = "https://api.openai.com/v1"
MAX_DOLLARS = 0.5
PRICES = {
    "gpt-6-luna": (0.10, 0.50),
    "gpt-5.6-luna": (0.20, 1.20),
    "gpt-5.4-mini": (0.75, 4.50),
}
"""US dollars for a million tokens in and out; scripts/catalog/models.json."""
HIGHEST_PRICE = max(PRICES.values())
CHARACTERS_PER_TOKEN = 3
HELD = "held"
DIFFERS = "differs"
UNTRIED = "could not be tried"
VERDICTS = (HELD, DIFFERS, UNTRIED)
MAX_MESSAGE_CHARACTERS = 300
SECRETS = re.compile(
    r"sk-[\w*.-]+|\b(?:org|proj|req|user|resp)[-_][\w-]+|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|[A-Za-z0-9+/_=-]{40,}"
)
HOSTED_CALLS = ("web_search_call", "code_interpreter_call")


@dataclass(frozen=True)
class Outcome:
    """The answer to one request."""

    status: int = 0
    param: str | None = None
    code: str | None = None
    message: str = ""
    output: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Result:
    """One case with its verdict."""

    case: Case
    verdict: str
    line: str = ""
    """What differs, or why the case was not tried."""
    outcome: Outcome = Outcome()


def make_bare(items: Sequence[Item]) -> list[Item]:
    """Return items without their ids and states."""
    return [
        {name: value for name, value in item.items() if name not in ("id", "status")}
        for item in items
    ]


def keep_messages(items: Sequence[Item]) -> list[Item]:
    """Return messages with their ids, without the reasoning before them."""
    return [dict(item) for item in items if item["type"] == "message"]


def keep_reasoning(items: Sequence[Item]) -> list[Item]:
    """Return reasoning with its id, without what it led to."""
    reasoning = [dict(item) for item in items if item["type"] == "reasoning"]
    for item in reasoning:
        item.pop("status", None)
    return reasoning


def break_content(items: Sequence[Item]) -> list[Item]:
    """Return items whose encrypted content has one changed character."""
    sent = make_bare(items)
    for item in sent:
        content = item.get("encrypted_content")
        if content:
            middle = len(content) // 2
            other = "A" if content[middle] != "A" else "B"
            item["encrypted_content"] = content[:middle] + other + content[middle + 1 :]
    return sent


def keep_hosted_ids(items: Sequence[Item]) -> list[Item]:
    """Return hosted calls as they are, other items without their ids."""
    sent: list[Item] = []
    for item in items:
        if item["type"] not in HOSTED_CALLS:
            sent += make_bare([item])
            continue
        call = dict(item)
        if isinstance(call.get("action"), dict):
            call["action"] = {
                name: value
                for name, value in call["action"].items()
                if name != "sources" and value
            }
        sent.append(call)
    return sent


EDITS: Mapping[str, Callable[[Sequence[Item]], list[Item]]] = {
    "bare": make_bare,
    "ids without reasoning": keep_messages,
    "only reasoning": keep_reasoning,
    "broken content": break_content,
    "with ids of hosted calls": keep_hosted_ids,
}


def build_body(case: Case, given: Mapping[str, Any]) -> Item:
    """Return a whole body; unless a case changes that, the answer has 16 tokens at most."""
    body = {"model": case.model, "input": "Say yes.", "store": False}
    limits = {"max_output_tokens": 16, "reasoning": {"effort": "none"}}
    return {**body, **limits, **given}


def estimate_dollars(case: Case) -> float:
    """Return the maximum cost of a case, if the API accepts what it should refuse."""
    if case.untried:
        return 0.0
    price_in, price_out = PRICES.get(case.model, HIGHEST_PRICE)
    dollars = case.fee
    for given in (case.first, case.body):
        body = build_body(case, given)
        tokens = len(json.dumps(body)) / CHARACTERS_PER_TOKEN
        limit = body["max_output_tokens"]
        written = limit if isinstance(limit, int) else 0
        dollars += (tokens * price_in + min(written, 4000) * price_out) / 1_000_000
    return dollars


def _ignore_result(_result: Result) -> None:
    """Do nothing with the result of a case."""


async def run_cases(
    cases: Sequence[Case],
    base_url: str,
    key: str,
    limit: float = MAX_DOLLARS,
    *,
    all_of_them: bool = False,
    on_result: Callable[[Result], object] = _ignore_result,
) -> list[Result]:
    """Try the cases one after the other until the estimated cost reaches the limit."""
    results: list[Result] = []
    spent = 0.0
    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for case in cases:
            spent += estimate_dollars(case)
            if case.untried and not all_of_them:
                result = Result(case, UNTRIED, case.untried)
            elif spent > limit:
                result = Result(case, UNTRIED, "the limit of the cost is reached")
            else:
                result = await _try_case(session, case, base_url, key)
            results.append(result)
            on_result(result)
    return results


async def _try_case(
    session: aiohttp.ClientSession, case: Case, base_url: str, key: str
) -> Result:
    url = f"{base_url.rstrip('/')}/responses"
    body = build_body(case, case.body)
    try:
        if case.first:
            first = await _post(session, url, key, build_body(case, case.first))
            if first.status != 200:
                return Result(case, UNTRIED, f"the first request: {_show(first)}")
            before = [{"role": "user", "content": case.first["input"]}]
            body["input"] = [*before, *EDITS[case.edit](first.output), *body["input"]]
        outcome = await _post(session, url, key, body)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return Result(case, UNTRIED, type(error).__name__)
    return judge(case, outcome)


async def _post(
    session: aiohttp.ClientSession, url: str, key: str, body: Item
) -> Outcome:
    kind = "application/json"
    headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
    sent = io.BytesIO(json.dumps(body).encode())
    async with session.post(url, data=sent, headers=headers) as answer:
        return read_outcome(answer.status, (await answer.read()).decode())


def read_outcome(status: int, text: str) -> Outcome:
    """Return the outcome of an answer: an object, an error body or a stream."""
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    events = [json.loads(line) for line in lines if line.strip().startswith("{")]
    last = events[-1] if events else json.loads(text)
    response = last.get("response") or last
    error = response.get("error") or {}
    if last.get("type") == "error" and not error:
        error = last
    return Outcome(
        status=status,
        param=error.get("param"),
        code=error.get("code"),
        message=str(error.get("message") or ""),
        output=tuple(response.get("output") or ()),
    )


def judge(case: Case, outcome: Outcome) -> Result:
    """Compare the outcome with the assumption."""
    if _is_about_account(case, outcome) or outcome.status >= 500:
        return Result(case, UNTRIED, _show(outcome), outcome)
    wrong = [
        f"{name} {got!r} instead of {expected!r}"
        for name, expected, got in (
            ("status", case.status, outcome.status),
            ("param", case.param, outcome.param),
            ("code", case.code, outcome.code),
        )
        if got != expected
    ]
    if not re.search(case.message, outcome.message):
        wrong.append("other words")
    return Result(case, DIFFERS if wrong else HELD, "; ".join(wrong), outcome)


def _is_about_account(case: Case, outcome: Outcome) -> bool:
    """Say whether a refusal that is not expected is about the key and its account."""
    if outcome.status in (401, 403, 429) and outcome.status != case.status:
        return True
    return outcome.code == "model_not_found" and outcome.code != case.code


def _show(outcome: Outcome) -> str:
    return f"status {outcome.status}, code {outcome.code}"


def redact(text: str) -> str:
    """Return a server's message on one line, without keys, ids and encrypted content."""
    line = " ".join(SECRETS.sub("…", text).split())
    return line.replace("|", "/")[:MAX_MESSAGE_CHARACTERS]


def write_report(results: Sequence[Result], base_url: str) -> str:
    """Return the report: figures, what differs, then all cases."""
    counts = Counter(result.verdict for result in results)
    server = "api.openai.com" if base_url == OPENAI else "another server"
    lines = [
        f"# The Responses API on {datetime.now(UTC):%Y-%m-%d}, {server}",
        "",
        ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS),
        "",
        "| case | model | verdict | what differs | the server's words | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for result in sorted(results, key=_by_need_of_reading):
        case = result.case
        cells = (
            case.name,
            case.model,
            result.verdict,
            redact(result.line),
            redact(result.outcome.message),
            case.source,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _by_need_of_reading(result: Result) -> int:
    """Return the order of results in the report: differences come first."""
    return (DIFFERS, UNTRIED, HELD).index(result.verdict)


def _print_result(result: Result) -> None:
    print(f"{result.verdict:<18}  {result.case.name:<48}  {redact(result.line)}")


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="scripts/live", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--base-url", default=OPENAI, help="another server's address")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--list", action="store_true", help="print the cases only")
    parser.add_argument("--limit", type=float, default=MAX_DOLLARS, help="US dollars")
    parser.add_argument("--report", type=Path, default=Path("live-report.md"))
    return parser.parse_args(arguments)


def main() -> int:
    """List, or ask, try and report; 1 if something differs."""
    options = parse_arguments()
    cases = [case for case in list_cases() if options.only in case.name]
    if options.list:
        for case in cases:
            print(f"{case.name:<48}  {case.model:<20}  {case.source}")
        return 0
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        print("Set OPENAI_API_KEY to a key of the API.", file=sys.stderr)
        return 2
    limit = min(options.limit, MAX_DOLLARS)
    dollars = min(sum(map(estimate_dollars, cases)), limit)
    print(f"{len(cases)} cases, at most {dollars:.2f} US dollars; {options.base_url}")
    if not options.yes and input("Go on? (y/n) ").strip().lower() not in ("y", "yes"):
        return 2
    results = asyncio.run(
        run_cases(cases, options.base_url, key, limit, on_result=_print_result)
    )
    options.report.write_text(write_report(results, options.base_url), "utf-8")
    counts = Counter(result.verdict for result in results)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    print(f"The report is in {options.report}; it can be attached to an issue.")
    return 1 if counts[DIFFERS] else 0


if __name__ == "__main__":
    sys.exit(main())
