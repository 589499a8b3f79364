"""The types of the events that the API streams, as of 2026-11-21."""

_OF_RESPONSES = """
audio.delta audio.done audio.transcript.delta audio.transcript.done
code_interpreter_call.completed code_interpreter_call.in_progress
code_interpreter_call.interpreting code_interpreter_call_code.delta
code_interpreter_call_code.done compaction.compacting completed content_part.added
content_part.done created custom_tool_call_input.delta custom_tool_call_input.done
failed file_search_call.completed file_search_call.in_progress
file_search_call.searching function_call_arguments.delta function_call_arguments.done
image_generation_call.completed image_generation_call.generating
image_generation_call.in_progress image_generation_call.partial_image in_progress
incomplete mcp_call.completed mcp_call.failed mcp_call.in_progress
mcp_call_arguments.delta mcp_call_arguments.done mcp_list_tools.completed
mcp_list_tools.failed mcp_list_tools.in_progress output_item.added output_item.done
output_text.annotation.added output_text.delta output_text.done queued
reasoning_summary_part.added reasoning_summary_part.done reasoning_summary_text.delta
reasoning_summary_text.done reasoning_text.delta reasoning_text.done refusal.delta
refusal.done shell_call_command.added shell_call_command.delta shell_call_command.done
shell_call_output_content.delta shell_call_output_content.done web_search_call.completed
web_search_call.in_progress web_search_call.searching
"""
KNOWN_TYPES = frozenset(
    {"error", *(f"response.{name}" for name in _OF_RESPONSES.split())}
)
