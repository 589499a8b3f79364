"""Spans and metrics of the built files, through OpenTelemetry's own SDK."""

import json

import pytest

from golden_run.built_files import BUILT_ADMINISTRATION
from hosts.people.questions import calling
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import MODEL, PLUGINS

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

TAP = (PLUGINS / "span_tap.py").read_text()
ADMINISTRATION = "openai_responses_administration"


@pytest.mark.asyncio
async def test_chat_exports_spans_and_metrics(admin: User, tab: Tab) -> None:
    """One for each request with those of its tools inside; none after the switch."""
    source = BUILT_ADMINISTRATION.read_text("utf-8")
    await admin.install_function(ADMINISTRATION, source)
    await admin.install_function("tap", TAP)
    await admin.models()  # the host reads its models when somebody lists them
    body = calling("get_weather", "toolkit")
    try:
        await admin.complete("tap", "on")
        turn = await tab.send(MODEL, "sim:tool canary", body=body)
        exported = await admin.complete("tap", "off")
        await tab.send(MODEL, "sim:short")
        later = await admin.complete("tap", "off")
    finally:
        await admin.delete_function("tap")
        await admin.delete_function(ADMINISTRATION)

    spans, metrics = json.loads(exported)
    assert turn.error is None
    assert len(json.loads(later)[0]) == len(spans)
    [tool] = [span for span in spans if span["name"] == "execute_tool get_weather"]
    [run] = [span for span in spans if span["context"]["span_id"] == tool["parent_id"]]
    assert run["name"] == "chat gpt-6.2-sol"
    assert run["attributes"]["gen_ai.response.model"] == "gpt-6.2-sol"
    instruments = {
        metric["name"]
        for resource in metrics["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }
    # The server is everybody's: a task of an earlier test may still be tried again.
    counts = {"openai_responses.recoveries", "openai_responses.retries"}
    assert instruments - counts == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "openai_responses.cost",
        "openai_responses.time_to_first_text",
    }
    assert "canary" not in exported
