"""What `/check` says about the set-up around the pipe: filters, rules, task models."""

from collections.abc import Sequence

from openai_responses.errors import InvalidRequest
from openai_responses.redaction import describe_exception
from owui_manifold.call.agent import find_agent
from owui_manifold.call.context import CheckedCall
from owui_manifold.host.open_webui import (
    ADMINISTRATION,
    InstalledFunction,
    installed_functions,
    missing_task_models,
)
from owui_manifold.prepare.agent import check_agent_model
from shells.valve_words import comma_list

_ADMINISTRATION_TITLE = "OpenAI Responses Administration"


def finding(what: str, works: str, complaint: str, advice: str = "") -> str:
    """Return the line about a piece of the set-up."""
    if not complaint:
        return f"- ✅ **{what}**: {works}"
    return f"- ❌ **{what}**: {complaint} {advice}".rstrip()


async def setup_lines(call: CheckedCall) -> list[str]:
    """Return what can keep users from their answers and no request shows."""
    valves = [*call.config.remote.complaints, *call.config.problems]
    valves += _agent_problems(call)
    lines = [finding("Valves", "All of them are valid.", " ".join(valves))]
    if call.account:
        rules = [problem for problem in call.account.limits.problems if problem]
        works = "The rules of USER_LIMITS_JSON are valid."
        lines.append(finding("Limits", works, " ".join(rules)))
    if call.host.request is None:
        return lines
    try:
        functions = await installed_functions()
        missing = await missing_task_models(call.host.request)
    except Exception as error:
        reason = f"Open WebUI could not list them ({describe_exception(error)})."
        return [*lines, finding("Filters", "", reason)]
    works = "They have the same version as the pipe."
    lines.append(finding("Filters", works, " ".join(_filter_problems(functions))))
    if missing:
        names = ", ".join(missing)
        gone = f"Open WebUI has no {names}, so tasks use the models that clients name."
        advice = "Choose others in Open WebUI's settings."
        lines.append(finding("Open WebUI's task models", "", gone, advice))
    return lines


def _agent_problems(call: CheckedCall) -> list[str]:
    """Return why the agents that MODEL_ID lists do not answer."""
    problems: list[str] = []
    for name in comma_list(call.valves.MODEL_ID):
        agent = find_agent(name, call.config.agent, is_switched=False)
        if agent is None:
            continue
        try:
            check_agent_model(agent, call.resolve(name))
        except InvalidRequest as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def _filter_problems(functions: Sequence[InstalledFunction]) -> list[str]:
    """Return what is wrong with the functions that came with the pipe."""
    problems: list[str] = []
    versions = {function.version for function in functions}
    if len(versions) > 1:
        titles = [f"{function.title} {function.version}" for function in functions]
        shown = ", ".join(titles)
        problems.append(f"Their versions differ: {shown}. Install one release.")
    for function in functions:
        if function.title != _ADMINISTRATION_TITLE:
            continue
        if function.id != ADMINISTRATION:
            problems.append(
                f"The id of {function.title} has to be {ADMINISTRATION}: no limits "
                "apply."
            )
        elif not function.is_active:
            problems.append(f"{function.title} is switched off: no limits apply.")
    return problems
