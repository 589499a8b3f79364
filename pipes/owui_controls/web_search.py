"""
title: Search with OpenAI
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model search the web at OpenAI, with its sources in the answer.

The switch in the composer for OpenAI's web search.
"""

from owui_controls.switch import Switch


class Filter(Switch):
    """A switch of its own next to Open WebUI's Web Search, which its server runs."""

    SWITCH = "web_search"
    DRAWING = (
        "<circle cx='12' cy='12' r='9'/><path d='M3 12h18M12 3c5 5 5 13 0 18M12 3c-5 "
        "5-5 13 0 18'/>"
    )
