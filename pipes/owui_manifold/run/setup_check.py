"""What `/check` says about the set-up around the pipe: filters, rules, task models."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from openai_responses.errors import InvalidRequest
from openai_responses.redaction import describe_exception, hide_keys
from owui_manifold.call.agent import check_agent_model, find_agent
from owui_manifold.call.config import SWITCH_CONTRACT, Config, named_models
from owui_manifold.call.context import Call
from owui_manifold.host.open_webui import (
    InstalledFunction,
    installed_filters,
    installed_version,
    missing_task_models,
)
from owui_manifold.prepare.hosted_tools import image_model_name
from shells.administration import ADMINISTRATION_CONTRACT, ADMINISTRATION_ID
from shells.endpoint_valves import read_headers

_STORED = "These have no effect. Saving the valves removes them."
_ADMINISTRATION_TITLE = "OpenAI Responses Administration"

_COUNTED = (
    "Requests, tokens and money of every answer and task of this pipe are counted, and "
    "shown by `/usage`. What users pay with their own keys is not counted."
)
_NOT_COUNTED = (
    "Nothing is counted, because USER_LIMITS_JSON is empty. `[]` would count."
)
_NO_FILTER = "Nothing is counted. That needs the filter of docs/limits.md."

Severity: TypeAlias = Literal["", "Problem", "Warning"]
"""How bad a finding is; empty: it is fine."""

_MARKS: dict[Severity, str] = {"": "✅", "Problem": "❌", "Warning": "⚠️"}


class Finding(NamedTuple):
    """What a check says about a piece of the set-up."""

    title: str
    text: str
    severity: Severity = ""

    def line(self) -> str:
        """Return the line of the answer.

        Without a font for emoji the marks look alike, so what is not fine says so.
        """
        mark = _MARKS[self.severity]
        text = hide_keys(self.text)  # the chat stores it
        if not self.severity:
            return f"- {mark} **{self.title}**: {text}"
        return f"- {mark} **{self.severity}: {self.title}.** {text}"


def assess(title: str, works: str, problem: str, advice: str = "") -> Finding:
    """Return the finding that a piece of the set-up works, or the problem with it."""
    if not problem:
        return Finding(title, works)
    return Finding(title, f"{problem} {advice}".rstrip(), "Problem")


async def setup_findings(call: Call) -> list[Finding]:
    """Return what can keep users from their answers and no request shows."""
    findings = valve_findings([*valve_problems(call.config), *_agent_problems(call)])
    old_names = call.valves.without_effect()
    if old_names:
        rows = [f"\n  - `{name}`: {instead}" for name, instead in old_names.items()]
        findings.append(Finding("Stored valves", _STORED + "".join(rows), "Warning"))
    # Models of the valves whose end is near.
    names = [
        *call.valves.model_names(),
        call.valves.TASK_MODEL.strip(),
        image_model_name(call.config),
    ]
    retirements = dict.fromkeys(call.retirement(name) for name in names)
    text = " ".join(notice for notice in retirements if notice)
    if text:
        findings.append(Finding("Models that retire", text, "Warning"))
    counted = _NO_FILTER
    if call.account:
        counted = _COUNTED if call.account.limits.is_counting else _NOT_COUNTED
    findings.append(Finding("Usage", counted))
    if call.account:
        rules = [problem for problem in call.account.limits.problems if problem]
        works = "The rules of USER_LIMITS_JSON are valid."
        findings.append(assess("Limits", works, " ".join(rules)))
    if call.host.request is None:
        return findings
    try:
        version = await installed_version(call.caller.function_id)
        filters = await installed_filters(call.host.request)
        missing = await missing_task_models(call.host.request)
    except Exception as error:
        reason = f"Open WebUI could not list them ({describe_exception(error)})."
        return [*findings, Finding("Filters", reason, "Problem")]
    if version:
        findings.append(Finding("Version", f"{version}."))
    works = "Those that are installed work with this version of the pipe."
    findings.append(assess("Filters", works, " ".join(_filter_problems(filters))))
    if missing:
        gone = (
            f"Open WebUI has no {', '.join(missing)}, so tasks use the models that "
            "clients name. Choose others in Open WebUI's settings."
        )
        findings.append(Finding("Open WebUI's task models", gone, "Problem"))
    return findings


def valve_problems(config: Config) -> list[str]:
    """Return what is wrong with the valves, also what stops all answers."""
    problems = [*config.remote.problems, *config.problems]
    try:
        named_models(config.valves)
    except InvalidRequest as error:
        problems.append(str(error))
    try:
        read_headers(config.valves.EXTRA_HEADERS, config.shell)
    except InvalidRequest as error:
        problems.append(str(error))
    return problems


def valve_findings(problems: Sequence[str]) -> list[Finding]:
    """Return a finding for each problem with the valves, or that there is none."""
    if not problems:
        return [Finding("Valves", "All of them are valid.")]
    return [Finding("Valves", problem, "Problem") for problem in problems]


def _agent_problems(call: Call) -> list[str]:
    """Return why the agents that MODEL_ID lists do not answer."""
    problems: list[str] = []
    for name in call.valves.model_names():
        agent = find_agent(name, call.config.agent, is_switched=False)
        if agent is None:
            continue
        try:
            check_agent_model(agent, call.resolve(name))
        except InvalidRequest as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def _filter_problems(filters: Sequence[InstalledFunction]) -> list[str]:
    """Return what does not work of the filters that came with the pipe.

    Those of other releases do, as long as what goes between them has not changed.
    """
    problems: list[str] = []
    for function in filters:
        is_administration = function.title == _ADMINISTRATION_TITLE
        known = ADMINISTRATION_CONTRACT if is_administration else SWITCH_CONTRACT
        if function.is_active and function.contract != known:
            older = "it" if function.contract < known else "the pipe"
            problems.append(
                f"{function.title} {function.version} does not work with this version "
                f"of the pipe. Update {older} (docs/install.md, Update)."
            )
        if not is_administration:
            continue
        if function.id != ADMINISTRATION_ID:
            problems.append(
                f"The id of {function.title} has to be {ADMINISTRATION_ID}: no limits "
                "apply."
            )
        elif not function.is_active:
            problems.append(f"{function.title} is switched off: no limits apply.")
    return problems
