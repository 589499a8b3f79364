"""Who asks, by what the host says."""

from shells.caller import ChatCaller, is_program

TASKS = [
    *("title_generation", "tags_generation", "follow_up_generation"),
    *("emoji_generation", "query_generation", "image_prompt_generation"),
    *("autocomplete_generation", "function_calling", "moa_response_generation"),
    *("context_compaction", "memory_review"),
]
"""As Open WebUI 0.12.4 names them."""


def test_tasks_of_the_host_and_chats_are_no_programs() -> None:
    """A sub-agent with tools puts its own where the host names its tasks.

    Only merged answers show no error.
    """
    assert [task for task in (*TASKS, "", "sub_agent") if is_program(task)] == [
        "sub_agent"
    ]
    drop_errors = [task for task in TASKS if ChatCaller(task=task).drops_errors]
    assert drop_errors == ["moa_response_generation"]


def test_host_reads_the_answer_of_a_message_in_a_chat() -> None:
    assert ChatCaller(chat_id="c-1", message_id="m-1").is_open_webui
    assert not ChatCaller(chat_id="c-1").is_open_webui
    assert not ChatCaller(message_id="m-1").is_open_webui
