"""All scenarios by name."""

from collections.abc import Mapping

from simulator.scenario import Scenario
from simulator.scenarios_chat import CHAT_SCENARIOS
from simulator.scenarios_faults import FAULT_SCENARIOS
from simulator.scenarios_http import HTTP_SCENARIOS
from simulator.scenarios_leaks import LEAK_SCENARIOS
from simulator.scenarios_made import MADE_SCENARIOS
from simulator.scenarios_mcp import MCP_SCENARIOS
from simulator.scenarios_search import SEARCH_SCENARIOS
from simulator.scenarios_tools import TOOL_SCENARIOS
from simulator.tasks import TASK

ALL_SCENARIOS = (
    *CHAT_SCENARIOS,
    *TOOL_SCENARIOS,
    *SEARCH_SCENARIOS,
    *MADE_SCENARIOS,
    *MCP_SCENARIOS,
    *FAULT_SCENARIOS,
    *HTTP_SCENARIOS,
    *LEAK_SCENARIOS,
    TASK,
)
SCENARIOS: Mapping[str, Scenario] = {one.name: one for one in ALL_SCENARIOS}
