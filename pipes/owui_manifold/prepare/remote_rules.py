"""The rules of TOOL_APPROVAL for remote MCP servers, whose tools OpenAI calls.

With `require_approval: never` OpenAI makes a call without telling anybody first. So
where a rule may be about a tool of such a server, OpenAI is told to ask each time, and
what no rule is about is answered here as the server's description says.
"""

from collections.abc import Sequence

from openai_responses.items import Item
from openai_responses.json_input import JsonObject, as_mapping
from openai_responses.loop.tools import Approval, ApprovalRules, Approver
from openai_responses.requests.replay import remote_name

_UNASKED = "never"


def put_under_rules(tool: Item, rules: ApprovalRules) -> Item:
    """Return a tool of a request; a remote server asks if a rule may be about it.

    The names of its tools are only known if its description lists them.
    """
    is_remote = tool.get("type") == "mcp"
    if not is_remote or all(answer == "auto" for _, answer in rules):
        return tool
    asking = {**tool, "require_approval": "always"}
    names = _tool_names(tool.get("allowed_tools"))
    if names is None:
        return asking
    approver = Approver(rules)
    for name in names:
        request = {"server_label": tool.get("server_label"), "name": name}
        if approver.rule_for(remote_name(request), name) != "auto":
            return asking
    return tool


def _tool_names(chosen: object) -> Sequence[str] | None:
    """Return the names in a list or a filter of tools; None if it does not name them."""
    if isinstance(chosen, list):
        return [str(name) for name in chosen]
    names = as_mapping(chosen).get("tool_names")
    return [str(name) for name in names] if isinstance(names, list) else None


def default_remote_rule(servers: Sequence[JsonObject], request: JsonObject) -> Approval:
    """Return what holds for a remote call that no rule is about.

    `servers` are as they are described: the last of a label counts. A filter may also
    choose tools that only read, which is not known here.
    """
    label = request.get("server_label")
    setting: object = None
    for server in servers:
        if server.get("server_label") == label:
            setting = server.get("require_approval")
    if setting == _UNASKED:
        return "auto"
    unasked = _tool_names(as_mapping(setting).get(_UNASKED)) or ()
    return "auto" if request.get("name") in unasked else "ask"
