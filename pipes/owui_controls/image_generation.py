"""
title: Images by OpenAI
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model draw and change images with OpenAI. Each image is billed.

The switch in the composer for OpenAI's image generation.
"""

from owui_controls.switch import Switch


class Filter(Switch):
    """A switch of its own next to Open WebUI's Image, which has a model of its own."""

    SWITCH = "image_generation"
    DRAWING = (
        "<rect x='3' y='4' width='18' height='16' rx='2'/>"
        "<circle cx='8.5' cy='9.5' r='1.5'/><path d='m4 18 5.5-5.5 4 4 3-3L21 18'/>"
    )
