"""
title: Python at OpenAI
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Runs Python at OpenAI; Code Interpreter runs it in the browser or Jupyter.

The switch in the composer for OpenAI's code interpreter.
"""

from owui_controls.switch import Switch


class Filter(Switch):
    """A switch of its own next to Open WebUI's Code Interpreter, run in the browser."""

    SWITCH = "code_interpreter"
    DRAWING = "<path d='m8 7-5 5 5 5m8-10 5 5-5 5M14 4l-4 16'/>"
