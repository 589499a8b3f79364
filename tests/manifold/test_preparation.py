"""The input of a chat, as far as one request takes it."""

from manifold.preparation import fit_history
from openai_responses.items import Item

LONG = "begin " + "x" * 5000 + " end"
CALL: Item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": LONG}
OUTPUT: Item = {"type": "function_call_output", "call_id": "c", "output": LONG}


def test_outputs_of_calls_keep_their_beginning_and_their_end() -> None:
    """Of nothing else; what was cut before stays as it is."""
    call, output = fit_history([CALL, OUTPUT], 1000)

    assert call == CALL
    assert len(output["output"]) < 2000
    assert output["output"].startswith("begin ")
    assert output["output"].endswith(" end")
    assert fit_history([call, output], 1000) == [call, output]


def test_a_plain_client_s_outputs_stay_whole() -> None:
    """Its program decides how long they are."""
    assert fit_history([OUTPUT], None) == [OUTPUT]
