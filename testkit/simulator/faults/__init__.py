"""Refusals and failures that a test puts into a simulator.

``simulator.faults`` is a list; ``simulator.forget()`` empties it::

    simulator.faults.append(refuse_item("web_search_call"))
    simulator.faults.append(refuse_item("reasoning", key="status", form="message"))
    simulator.faults.append(refuse_item("message", part="input_image"))
    simulator.faults.append(refuse_item(text="poison", form="openrouter", status=404))
    simulator.faults.append(refuse_tool("get_weather", delivery="failed"))
    simulator.faults.append(refuse_tool("web_search", form="phrase"))
    simulator.faults.append(refuse_parameter("text.verbosity", form="litellm"))
    simulator.faults.append(FailedStart("error", code="rate_limit_exceeded", times=2))
    simulator.faults.append(FailedStart("cut", after_rounds=1))

The type, ``text``, ``key`` and ``part`` say what is refused. Every request that contains
it is refused, however often it comes; one without it passes. The message names the place
of the part in that request. :data:`simulator.faults.forms.FORMS` lists the forms of the
body, :data:`simulator.faults.forms.DELIVERIES` how it arrives. With the form ``unnamed``
the message says nothing about the part. A :class:`FailedStart` is temporary: the same
question is answered after ``times`` attempts.
"""

from simulator.faults.forms import DELIVERIES, FORMS
from simulator.faults.parts import (
    RefusedPart,
    refuse_item,
    refuse_parameter,
    refuse_tool,
)
from simulator.faults.starts import FailedStart

__all__ = [
    "DELIVERIES",
    "FORMS",
    "FailedStart",
    "RefusedPart",
    "refuse_item",
    "refuse_parameter",
    "refuse_tool",
]
