"""The server's addresses: which of them ask for the key, what they do.

python -m uvicorn --factory hosts.servers.pipelines_stand_in.server:app
"""

import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.cors import CORSMiddleware
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from hosts.servers.pipelines_stand_in.chat import ChatForm, streamed, whole
from hosts.servers.pipelines_stand_in.shelf import Shelf

Json = dict[str, Any]
_KEY_ASKED = Depends(HTTPBearer())


class FilterForm(BaseModel):
    """What a filter is shown: a body, and who sent it."""

    body: Json
    user: Json | None = None


class DeleteForm(BaseModel):
    """Which pipeline shall go."""

    id: str


class Server:
    """The pipelines of one folder behind one key."""

    def __init__(self, folder: Path, key: str) -> None:
        self.shelf = Shelf(folder)
        self._key = key
        self.models: dict[str, Json] = {}

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Load and start the pipelines; stop them at the end."""
        await self.shelf.fill()
        yield
        await self.shelf.empty()

    async def look_again(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        self.models = self.shelf.models()
        return await call_next(request)

    def only_with_key(self, given: HTTPAuthorizationCredentials = _KEY_ASKED) -> None:
        if given.credentials != self._key:
            raise HTTPException(401, "Invalid API key")

    # ---- with the key

    async def list_models(self) -> Json:
        """The models, as Open WebUI reads them."""
        return {
            "object": "list",
            "pipelines": True,
            "data": [_model(entry) for entry in self.shelf.models().values()],
        }

    async def list_pipelines(self) -> Json:
        """The files that are loaded."""
        pipelines = self.shelf.pipelines.items()
        return {
            "data": [
                {
                    "id": pipeline_id,
                    "name": self.shelf.file_names[pipeline_id],
                    "type": getattr(pipeline, "type", "pipe"),
                    "valves": hasattr(pipeline, "valves"),
                }
                for pipeline_id, pipeline in pipelines
            ]
        }

    async def upload(self, file: UploadFile) -> Json:
        """Save a file, load everything again, and call that a success."""
        name = str(file.filename)
        if not name.endswith(".py"):
            raise HTTPException(400, "Only Python files are allowed.")
        path = self.shelf.folder / name
        try:
            with path.open("wb") as saved:
                shutil.copyfileobj(file.file, saved)
            await self.shelf.refill()
        except Exception as error:
            raise HTTPException(500, str(error)) from error
        return {"status": True, "detail": f"Pipeline uploaded successfully to {path}"}

    async def reload(self) -> Json:
        await self.shelf.refill()
        return {"message": "Pipelines reloaded successfully."}

    async def delete(self, form: DeleteForm) -> Json:
        """Remove a file; its valves stay behind."""
        self._pipeline(form.id)
        path = self.shelf.folder / f"{self.shelf.file_names[form.id]}.py"
        path.unlink()
        await self.shelf.refill()
        return {"status": True, "detail": f"Pipeline {form.id} deleted successfully"}

    # ---- without it

    async def status(self) -> Json:
        return {"status": True}

    async def valves(self, pipeline_id: str) -> Any:
        return self._pipeline(pipeline_id).valves

    async def valves_spec(self, pipeline_id: str) -> Any:
        return self._pipeline(pipeline_id).valves.model_json_schema()

    async def update_valves(self, pipeline_id: str, values: Json) -> Any:
        """Replace the valves; what a model refuses comes back in its own words."""
        pipeline = self._pipeline(pipeline_id)
        try:
            await self.shelf.update_valves(pipeline_id, values)
        except Exception as error:
            raise HTTPException(500, str(error)) from error
        return pipeline.valves

    async def inlet(self, pipeline_id: str, form: FilterForm) -> Any:
        return await self._filtered(pipeline_id, form, "inlet")

    async def outlet(self, pipeline_id: str, form: FilterForm) -> Any:
        return await self._filtered(pipeline_id, form, "outlet")

    async def complete(self, form: ChatForm) -> Any:
        """Ask a pipeline, in a thread."""
        model = self.models.get(form.model)
        if model is None or model["type"] == "filter":
            raise HTTPException(404, f"Pipeline {form.model} not found")
        owner = form.model
        asked_for = form.model
        if model["type"] == "manifold":
            owner, asked_for = form.model.split(".", 1)
        pipe = self.shelf.pipelines[owner].pipe
        if not form.stream:
            return await run_in_threadpool(whole, pipe, form, asked_for)
        lines = streamed(pipe, form, asked_for)
        return StreamingResponse(lines, media_type="text/event-stream")

    def _pipeline(self, pipeline_id: str) -> Any:
        if pipeline_id not in self.shelf.pipelines:
            raise HTTPException(404, f"Pipeline {pipeline_id} not found")
        return self.shelf.pipelines[pipeline_id]

    async def _filtered(self, pipeline_id: str, form: FilterForm, way: str) -> Any:
        if pipeline_id not in self.models:
            raise HTTPException(404, f"Filter {pipeline_id} not found")
        asked_for = self.models.get(str(form.body.get("model")), {})
        if asked_for.get("type") == "manifold":
            pipeline_id = pipeline_id.partition(".")[0]
        pipeline = self.shelf.pipelines[pipeline_id]
        if not hasattr(pipeline, way):
            return form.body
        try:
            return await getattr(pipeline, way)(form.body, form.user)
        except Exception as error:
            raise HTTPException(500, str(error)) from error


def _model(entry: Json) -> Json:
    shown = {"type": entry["type"], "valves": entry["has_valves"]}
    if entry["type"] == "filter":
        shown |= {"pipelines": entry["pipelines"], "priority": entry["priority"]}
    return {
        "id": entry["id"],
        "name": entry["name"],
        "object": "model",
        "created": int(time.time()),
        "owned_by": "openai",
        "pipeline": shown,
    }


def app() -> FastAPI:
    """The server of the folder and the key that the environment names."""
    logging.basicConfig(level=logging.INFO)
    folder = Path(os.environ["PIPELINES_DIR"])
    server = Server(folder, os.environ["PIPELINES_API_KEY"])
    made = FastAPI(lifespan=server.lifespan)
    made.add_middleware(CORSMiddleware, allow_origins=["*"])
    made.middleware("http")(server.look_again)
    locked = [Depends(server.only_with_key)]
    with_key = {
        "/models": ("GET", server.list_models),
        "/pipelines": ("GET", server.list_pipelines),
        "/pipelines/upload": ("POST", server.upload),
        "/pipelines/reload": ("POST", server.reload),
        "/pipelines/delete": ("DELETE", server.delete),
    }
    without_key = {
        "/": ("GET", server.status),
        "/{pipeline_id}/valves": ("GET", server.valves),
        "/{pipeline_id}/valves/spec": ("GET", server.valves_spec),
        "/{pipeline_id}/valves/update": ("POST", server.update_valves),
        "/{pipeline_id}/filter/inlet": ("POST", server.inlet),
        "/{pipeline_id}/filter/outlet": ("POST", server.outlet),
        "/chat/completions": ("POST", server.complete),
    }
    for routes, dependencies in ((with_key, locked), (without_key, [])):
        for path, (method, endpoint) in routes.items():
            for prefix in ("", "/v1"):
                address = f"{prefix}{path}".removesuffix("/") or "/"
                made.add_api_route(
                    address,
                    endpoint,
                    methods=[method],
                    dependencies=dependencies,
                    response_model=None,
                )
    return made
