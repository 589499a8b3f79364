"""
title: Test toolkit
description: Tools of every kind of behavior
"""

import asyncio
import os
import time
from pathlib import Path

from fastapi.responses import HTMLResponse


class Tools:
    """What the methods say is what the model reads."""

    def get_weather(self, city: str) -> str:
        """
        The weather of a city.
        :param city: name of the city
        """
        (Path(os.environ["DATA_DIR"]) / "seen").touch()
        return f"Sunny in {city}."

    async def slow_weather(self, city: str) -> str:
        """
        The weather of a city, after an hour.
        :param city: name of the city
        """
        await asyncio.sleep(3_600)
        return f"Late sun in {city}."

    def blocking_weather(self, city: str) -> str:
        """
        The weather of a city, holding its thread while a file says so.
        :param city: name of the city
        """
        home = Path(os.environ["DATA_DIR"])
        while (home / "hold").exists():
            time.sleep(0.05)
        return f"Heavy sun in {city}."

    def broken_weather(self, city: str) -> str:
        """
        The weather of a city, never.
        :param city: name of the city
        """
        raise ValueError(f"canary-of-the-exception for {city}")

    def weather_board(self, city: str) -> HTMLResponse:
        """
        A board with the weather of a city.
        :param city: name of the city
        """
        headers = {"Content-Disposition": "inline"}
        return HTMLResponse(f"<b>Sun in {city}</b>", headers=headers)

    def take_note(self, input: str) -> str:
        """
        Keep a note.
        :param input: the note
        """
        return f"Noted: {input}"
