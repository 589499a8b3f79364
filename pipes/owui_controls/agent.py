"""
title: Agent
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model plan, use tools and keep working until it has an answer.

The switch in the composer that makes an agent of the model.
"""

from owui_controls.switch import Switch


class Filter(Switch):
    """A switch for the work of one message; what an agent does, the pipe knows."""

    SWITCH = "agent"
    DRAWING = (
        "<path d='M12 8V4m-8 8H2m20 0h-2M9 13v2m6-2v2'/>"
        "<rect x='4' y='8' width='16' height='12' rx='2'/>"
    )
