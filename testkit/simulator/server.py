"""The stand-in as a server on 127.0.0.1."""

import asyncio
import json
import math
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from simulator.accounts import KEY, PROFILES, Profile, find_account
from simulator.answers import RequestOrigin, Responder
from simulator.delivery import AnswerDelivery, RecordedRequest
from simulator.faults import FailedStart, RefusedPart
from simulator.files import container_file
from simulator.models import MODELS
from simulator.refusals import Refusal, refuse
from simulator.storage import ResponseStore, StoredResponse, read_start_position
from simulator.uploads import UploadStore

WAIT_SECONDS = 60.0
"""How long a test waits for something that must happen, on a busy machine too."""
AnswerRequest = Callable[[web.Request, RecordedRequest], Awaitable[web.StreamResponse]]
MAX_BODY_BYTES = 64 * 1024 * 1024
SECRET_HEADERS = ("authorization", "api-key")
"""A record of a request does not have them."""


class Simulator:
    """A strict ``POST /v1/responses``, used as ``async with Simulator() as sim``."""

    def __init__(
        self,
        profile: str = "strictest",
        *,
        port: int = 0,
        default_scenario: str = "chat",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Choose the profile; nothing is opened yet."""
        self.profile: Profile = PROFILES[profile]
        self.port = port
        self.default_scenario = default_scenario
        self.api_key = KEY
        self.requests: list[RecordedRequest] = []
        self._wall_clock = clock
        self._skipped_seconds = 0.0
        self._responder = Responder(self._clock)
        self._responses = ResponseStore()
        self._randomness = random.Random(0)
        self._together_count = 0
        self._changed = asyncio.Condition()
        self._stopping = asyncio.Event()
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        """The address to give to a client, with ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def open_streams(self) -> int:
        return sum(request.is_open for request in self.requests)

    @property
    def stored_ids(self) -> list[str]:
        return self._responses.ids()

    @property
    def uploads(self) -> UploadStore:
        return self._responder.uploads

    @property
    def faults(self) -> list[RefusedPart | FailedStart]:
        """The parts that are refused and the starts that fail: :mod:`simulator.faults`."""
        return self._responder.faults

    def forget(self) -> None:
        """Return to the state of a new simulator; only the ids go on."""
        self.requests.clear()
        self._released.clear()
        self._together_count = 0
        self._skipped_seconds = 0.0
        self._responder.forget()
        self._responses.forget()

    def pass_time(self, seconds: float) -> None:
        """Let time pass for containers and stored responses, until :meth:`forget`."""
        self._skipped_seconds += seconds

    def _clock(self) -> float:
        return self._wall_clock() + self._skipped_seconds

    def release(self) -> None:
        """Let the answers with the option ``hold`` go on, now and later."""
        self._released.set()

    async def closed_early(self, timeout: float = WAIT_SECONDS) -> RecordedRequest:
        """Wait for a request whose client left before the end; return the newest."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(self._requests_closed_early)
        return self._requests_closed_early()[-1]

    def _requests_closed_early(self) -> list[RecordedRequest]:
        return [request for request in self.requests if request.closed_by_client]

    async def all_ended(self, timeout: float = WAIT_SECONDS) -> None:
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: not self.open_streams)

    async def requested(
        self, count: int = 1, timeout: float = WAIT_SECONDS
    ) -> RecordedRequest:
        """Wait until at least ``count`` requests have come; return the newest."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)
        return self.requests[-1]

    async def start(self) -> None:
        """Listen on 127.0.0.1; port 0 takes a free one."""
        app = web.Application(
            client_max_size=MAX_BODY_BYTES, middlewares=[self._send_refusals]
        )
        post, get = app.router.add_post, app.router.add_get
        for base in ("/v1", "/openai/v1"):
            responses = f"{base}/responses"
            post(responses, partial(self._record_answer, self._create))
            get(f"{responses}/{{id}}", partial(self._record_answer, self._retrieve))
            cancel = f"{responses}/{{id}}/cancel"
            post(cancel, partial(self._record_answer, self._cancel))
            post(f"{base}/files", self._post_file)
        get("/v1/models", self._get_models)
        content_path = "/v1/containers/{container}/files/{file}/content"
        get(content_path, partial(self._record_answer, self._get_content))
        app.router.add_route("*", "/{path:.*}", self._refuse_url)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """End the answers that stall or hold, and close the server."""
        self._stopping.set()
        self._released.set()
        self._responses.end()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _get_models(self, request: web.Request) -> web.Response:
        account = find_account(request.headers)
        models = [
            {
                "id": model.id,
                "object": "model",
                "created": 1_760_000_000,
                "owned_by": "system",
                "shutdown_date": model.shutdown,
            }
            for model in MODELS.values()
            if account.may_use(model.id)
        ]
        return web.json_response({"object": "list", "data": models})

    async def _get_content(
        self, request: web.Request, record: RecordedRequest
    ) -> web.Response:
        account = find_account(request.headers)
        container = request.match_info["container"]
        if self._responder.containers.has_expired(container, self._clock()):
            raise refuse("expired_file_container")
        content = container_file(account, container, request.match_info["file"])
        record.status = 200
        record.finished = True
        return web.Response(body=content, content_type="application/octet-stream")

    async def _post_file(self, request: web.Request) -> web.Response:
        """Keep an uploaded file; uploads are not in :attr:`requests`."""
        form = await request.post()
        fields = {name: text for name, text in form.items() if isinstance(text, str)}
        file = form.get("file")
        account = find_account(request.headers)
        if not isinstance(file, web.FileField):
            raise refuse("missing_file")
        content = file.file.read()
        now = self._clock()
        kept = self.uploads.add(account, file.filename, content, fields, now)
        return web.json_response(kept.wire())

    async def _refuse_url(self, request: web.Request) -> web.Response:
        raise refuse("unknown_url", method=request.method, path=request.path)

    @web.middleware
    async def _send_refusals(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return web.json_response(
                refusal.body(), status=refusal.status, headers=self._headers(request)
            )

    async def _record_answer(
        self, answer: AnswerRequest, request: web.Request
    ) -> web.StreamResponse:
        """Answer a request, or refuse it; record either.

        In the record, a body that is no JSON object counts as empty.
        """
        try:
            body = read_json(await request.read())
        except ValueError:
            body = None
        record = RecordedRequest(
            path=request.path,
            method=request.method,
            query=dict(request.query),
            headers={
                name: "***" if name.lower() in SECRET_HEADERS else value
                for name, value in request.headers.items()
            },
            body=body if isinstance(body, dict) else {},
            started_at=self._clock(),
        )
        self.requests.append(record)
        await self._notify()
        try:
            return await answer(request, record)
        except Refusal as refusal:
            record.status = refusal.status
            record.response = refusal.body()
            record.finished = True
            raise
        except (asyncio.CancelledError, ConnectionResetError):
            record.closed_by_client = not self._stopping.is_set()
            raise
        finally:
            record.ended_at = self._clock()
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _create(
        self, request: web.Request, record: RecordedRequest
    ) -> web.StreamResponse:
        account = find_account(request.headers)
        if not record.body and (await request.read()).strip() != b"{}":
            raise refuse("not_json")
        headers = request.headers
        profile = headers.get("X-Simulator-Profile", self.profile.name)
        if profile not in PROFILES:
            message = f"The stand-in has no profile '{profile}'."
            raise Refusal(message, code="no_profile")
        authorization = headers.get("Authorization")
        origin = RequestOrigin(
            account=account,
            profile=PROFILES[profile],
            requested_scenario=headers.get("X-Simulator-Scenario"),
            default_scenario=self.default_scenario,
            authorization=authorization or f"api-key: {headers['api-key']}",
        )
        answer = self._responder.answer(record.body, origin)
        record.scenario = answer.scenario
        count = answer.options.number("together")
        if count:
            # The group of `count` requests that this one belongs to has to be whole.
            self._together_count += 1
            whole = count * math.ceil(self._together_count / count)
            await self._notify()
            async with self._changed:
                await self._changed.wait_for(lambda: self._together_count >= whole)
        stored = self._responses.keep(answer, record.body, account, self._clock())
        return await self._delivery(request, record, stored).send(answer)

    async def _retrieve(
        self, request: web.Request, record: RecordedRequest
    ) -> web.StreamResponse:
        account = find_account(request.headers)
        stored = self._responses.find(request.match_info["id"], account)
        start = read_start_position(request.query, stored, self._clock())
        stored.retrievals += 1
        record.scenario = stored.answer.scenario
        if stored.retrievals <= (stored.answer.options.number("busy") or 0):
            raise refuse("overload")
        delivery = self._delivery(request, record, stored, start or 0)
        if start is None:
            return delivery.send_object(stored.snapshot())
        return await delivery.resume(stored)

    async def _cancel(
        self, request: web.Request, record: RecordedRequest
    ) -> web.StreamResponse:
        account = find_account(request.headers)
        stored = self._responses.find(request.match_info["id"], account)
        return self._delivery(request, record, stored).send_object(stored.cancel())

    def _delivery(
        self,
        request: web.Request,
        record: RecordedRequest,
        stored: StoredResponse | None,
        start: int = 0,
    ) -> AnswerDelivery:
        return AnswerDelivery(
            request=request,
            record=record,
            headers=self._headers(request),
            stopping=self._stopping,
            released=self._released,
            randomness=self._randomness,
            clock=self._clock,
            stored=stored,
            start=start,
            server=request.headers.get("X-Simulator-Profile", self.profile.name),
        )

    def _headers(self, request: web.Request) -> dict[str, str]:
        name = request.headers.get("X-Simulator-Profile", "")
        profile = PROFILES.get(name, self.profile)
        return {
            "x-request-id": f"req_{len(self.requests):032x}",
            "openai-processing-ms": "12",
            "openai-version": "2020-10-01",
            **profile.rate_limits,
        }


def read_json(raw: bytes) -> Any:
    """Return the JSON of a body, or raise ValueError.

    JSON has neither NaN nor infinity. Assumed: half of a surrogate pair is refused, too,
    as other servers do (reports: anomalyco/opencode 13985).
    """

    def refuse_constant(name: str) -> None:
        raise ValueError(f"JSON has no {name}.")

    value = json.loads(raw.decode(), parse_constant=refuse_constant)
    if b"\\u" in raw:
        json.dumps(value, ensure_ascii=False).encode()  # fails for half of a pair
    return value
