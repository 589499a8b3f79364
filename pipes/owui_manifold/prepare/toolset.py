"""What runs the calls of a chat here, and who is asked about them."""

from dataclasses import replace
from functools import partial

from manifold.preparation import OfferedTools
from manifold.request_settings import call_limits
from openai_responses.json_input import as_mapping
from openai_responses.loop.tools import Toolset
from owui_manifold.call.callers import given_tools
from owui_manifold.call.context import Call, is_chats_model
from owui_manifold.host.approvals import HostQuestions, build_approver
from owui_manifold.host.open_webui import stores_approvals
from owui_manifold.host.tools import HostTools, ToolUser, long_running_tools
from owui_manifold.prepare.remote_rules import default_remote_rule
from strategies.guard import GuardedTools


def chat_toolset(call: Call, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless a plain client has to."""
    valves = call.valves
    tools = HostTools(call.host, tool_user(call), offered.names, call.log.hide)
    approver = build_approver(call.host, call.config.approval_rules, call.log.warn)
    # OpenAI calls the tools of remote servers; the chat's own tools may describe one.
    given = [as_mapping(tool) for tool in given_tools(call.body)]
    servers = [*call.config.remote.tools, *given]
    approver = replace(approver, remote_default=partial(default_remote_rule, servers))
    # Calls of Open WebUI's own chats always run here; one of a tool that it does not have
    # is answered with an error. A plain client runs its own functions, and if it has one
    # that Open WebUI does not have, all calls of the chat are left to it.
    runs_calls = call.caller.is_open_webui or all(
        name in call.host.tools for name in offered.names.known
    )
    judge: HostQuestions | None = None
    if _has_questions_of_host(call):
        judge = HostQuestions(call.host, approver, tools)
    toolset = Toolset(
        tools=tools,
        approver=approver,
        limits=call_limits(valves, call.config.timeouts, long_running_tools(call.host)),
        log=call.log.warn,
        redacted=call.log.redacted_for_model,
        carries_reasoning=valves.carries_reasoning(),
        runs_calls=runs_calls,
        judge=judge,
    )
    if call.agent is None:
        return toolset
    # A call that failed is not made again with the same arguments.
    guarded = GuardedTools(tools, judge)
    texts = call.agent.parameters.call_texts(valves.MAX_TOOL_CALLS)
    return toolset._replace(tools=guarded, judge=guarded, texts=texts)


def _has_questions_of_host(call: Call) -> bool:
    """Say whether the host can ask about calls, and somebody can answer.

    It asks about the calls that it finds in a stream, and stores them in the chat's
    row. No one looks at the chats of automations and sub-agents, and whoever started
    them takes an answer that waits for one that is over (utils/automations.py:529,
    utils/subagents.py:497).
    """
    metadata = call.host.metadata
    if metadata.get("automation_id") or metadata.get("internal"):
        return False
    # Another function in the chat reads the text alone, and would lose a call that is
    # left open. A dialog asks for it, and for all but the first of several models.
    if not is_chats_model(call.caller.host_model, metadata):
        return False
    return call.caller.may_have_row and call.caller.streams and stores_approvals()


def tool_user(call: Call) -> ToolUser:
    """Return for whom the tools of a call run."""
    caller = call.caller
    return ToolUser(
        user_id=caller.user_id,
        messages=call.messages,
        has_row=caller.may_have_row,
        threads=call.memory.threads,
        account=call.account,
    )
