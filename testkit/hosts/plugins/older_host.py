"""
title: Makes the server claim another version
"""

import open_webui.env


class Pipe:
    def pipes(self) -> list[dict[str, str]]:
        return [{"id": "set", "name": "Set the version"}]

    async def pipe(self, body: dict) -> str:  # type: ignore[type-arg]
        open_webui.env.VERSION = body["messages"][-1]["content"]
        return "done"
