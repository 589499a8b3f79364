"""All scenarios by name, and the one that answers Open WebUI's tasks."""

import json
import re
from collections.abc import Mapping

from simulator.options import Options
from simulator.request import ValidRequest
from simulator.scenarios.agent import AGENT_SCENARIOS
from simulator.scenarios.builders import build_message
from simulator.scenarios.chat import CHAT_SCENARIOS
from simulator.scenarios.faults import FAULT_SCENARIOS, LEAK_SCENARIOS
from simulator.scenarios.http import HTTP_SCENARIOS
from simulator.scenarios.made import MADE_SCENARIOS
from simulator.scenarios.mcp import MCP_SCENARIOS
from simulator.scenarios.scenario import Reply, Scenario, make_reply, make_scenario
from simulator.scenarios.search import SEARCH_SCENARIOS
from simulator.scenarios.show import SHOW_SCENARIOS
from simulator.scenarios.tools import TOOL_SCENARIOS

TASK_ANSWERS: dict[str, object] = {
    "title": "Talking to a Stand-in",
    "tags": ["Technology", "Testing"],
    "follow_ups": ["What comes next?", "Can you show an example?", "Why is that so?"],
    "queries": ["how a stand-in answers"],
    "prompt": "A quiet harbour at dawn, painted in soft blue tones.",
    "text": "and so it goes on.",
}
TASK_OUTPUT_PATTERN = re.compile(
    r'### Output.*?"(?P<field>[a-z_]+)"\s*:', re.DOTALL | re.IGNORECASE
)
TASK_FIELD_PATTERN = re.compile(r'"(?P<field>title|tags|follow_ups|queries)"')


def find_task_field(text: str) -> str | None:
    """Return the field that the prompt of a task asks for; None for other prompts."""
    if "### Task:" not in text:
        return None
    match = TASK_OUTPUT_PATTERN.search(text) or TASK_FIELD_PATTERN.search(text)
    field = match["field"] if match else ""
    return field if field in TASK_ANSWERS else None


def _answer_task(request: ValidRequest, _options: Options) -> Reply:
    field = find_task_field(request.last_user_text) or "title"
    return make_reply(build_message(json.dumps({field: TASK_ANSWERS[field]})))


TASK_SCENARIO = make_scenario(
    "task", "the JSON that a prompt for titles, tags or follow-ups wants", _answer_task
)


ALL_SCENARIOS = (
    *CHAT_SCENARIOS,
    *TOOL_SCENARIOS,
    *SEARCH_SCENARIOS,
    *MADE_SCENARIOS,
    *MCP_SCENARIOS,
    *FAULT_SCENARIOS,
    *HTTP_SCENARIOS,
    *LEAK_SCENARIOS,
    *SHOW_SCENARIOS,
    *AGENT_SCENARIOS,
    TASK_SCENARIO,
)
SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario for scenario in ALL_SCENARIOS
}
