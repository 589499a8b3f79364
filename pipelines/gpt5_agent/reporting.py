"""The agent's events, told to a user interface in the seed's words."""

from gpt5_agent.events import (
    AgentEvent,
    NewMessage,
    ReadyForInput,
    StateChanged,
    ToolCallRequested,
)
from gpt5_agent.ports import UserInterface


def report(event: AgentEvent, interface: UserInterface) -> None:
    """Call what an event is for; events that the seed does not have are left out."""
    match event:
        case NewMessage():
            interface.on_new_message(event)
        case ToolCallRequested():
            interface.on_tool_call_request(event)
        case StateChanged():
            interface.on_agent_state_change(event.state)
        case ReadyForInput():
            interface.on_ready_for_input()
