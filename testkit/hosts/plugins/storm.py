"""
title: Storm
description: Tools that work, fail, hang, die, or say too much
"""

import asyncio


class Tools:
    """What the methods say is what the model reads."""

    def steady(self, town: str) -> str:
        """
        The wind in a town.
        :param town: name of the town
        """
        return f"Calm in {town}."

    def failing(self, town: str) -> str:
        """
        The wind in a town, never.
        :param town: name of the town
        """
        raise ValueError(f"canary-of-the-exception for {town}")

    async def hanging(self, town: str) -> str:
        """
        The wind in a town, after an hour.
        :param town: name of the town
        """
        await asyncio.sleep(3_600)
        return f"Late in {town}."

    def dying(self, town: str) -> str:
        """
        The wind in a town, from a library that ends its program.
        :param town: name of the town
        """
        raise SystemExit(f"canary-of-the-exit for {town}")

    def endless(self, town: str) -> str:
        """
        The wind in a town, at length.
        :param town: name of the town
        """
        return f"Calm in {town}." + " And so on." * 50_000
