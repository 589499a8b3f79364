"""Runs cases, each with a server, a pipe and an event loop of its own."""

import asyncio
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from event_loops.idle_clock import IdleClockLoop, skip_waiting
from golden_run.agent_chats import AGENT_READERS, AgentChat
from golden_run.built_files import ValveReader, load_pipe, load_pipeline
from golden_run.cases import SimulatedChat, simulated_chats, transcript_plan
from golden_run.normal_form import normal_form
from golden_run.pipe_chats import PIPE_READERS, ChatPlan, PipeChat, Server
from golden_run.replay_server import STALLING, ReplayServer
from golden_run.transcripts import Transcript, read_transcripts
from hosts.servers.functions import HostFunctions
from simulator import Simulator

Json = dict[str, Any]
OpenServer = Callable[[], AbstractAsyncContextManager[Server]]

NOON = 1_795_262_400.0
SECOND_ANSWER = "hello"
"""The transcript that answers whatever is asked after a run."""
_CASE_SECONDS = 7200
"""Seconds of the loop's clock, which jumps over waiting."""


@dataclass(frozen=True)
class Subject:
    """Something that is asked: a transcript or a chat with the simulator."""

    name: str
    plan: ChatPlan
    open_server: OpenServer


class GoldenRun:
    """The two built files under test."""

    def __init__(self, pipe: Path, pipeline: Path, functions: HostFunctions) -> None:
        """Load both files."""
        self._pipe: ModuleType = load_pipe(pipe)
        self._pipeline: ModuleType = load_pipeline(pipeline)
        self._functions = functions
        self._valves = {"pipe": ValveReader(), "agents": ValveReader()}

    def outcomes(self, streams: Path, wanted: str) -> Iterator[tuple[str, str]]:
        """Yield each case whose name contains `wanted` with what came of it."""
        skip_waiting(True)
        _silence_logs()
        for subject in _subjects(streams):
            for pipe_reader in PIPE_READERS:
                name = f"pipe/{subject.name}/{pipe_reader.name}"
                if wanted in name:
                    yield name, self._run(subject, PipeChat, pipe_reader, "pipe")
            # The agents' loop is in a thread, where the time that a stall takes is real.
            if subject.name in STALLING:
                continue
            for agent_reader in AGENT_READERS:
                name = f"agents/{subject.name}/{agent_reader.name}"
                if wanted in name:
                    yield name, self._run(subject, AgentChat, agent_reader, "agents")

    def unknown_settings(self) -> list[str]:
        """Return the settings of the cases that neither file knows."""
        dropped = [reader.dropped for reader in self._valves.values()]
        return sorted(set.intersection(*dropped))

    def _run(self, subject: Subject, chat: Any, reader: Any, shell: str) -> str:
        module = self._pipe if shell == "pipe" else self._pipeline

        async def run() -> Json:
            async with asyncio.timeout(_CASE_SECONDS), subject.open_server() as server:
                made = chat(
                    module,
                    server,
                    self._functions,
                    reader,
                    subject.plan,
                    self._valves[shell],
                )
                outcome: Json = await made.run()
                return outcome

        with asyncio.Runner(loop_factory=IdleClockLoop) as runner:
            try:
                return normal_form(runner.run(run()))
            except Exception as error:
                return f"The case raised {error!r}\n"


def _subjects(streams: Path) -> Iterator[Subject]:
    transcripts = read_transcripts(streams)
    [second_answer] = [t for t in transcripts if t.name == SECOND_ANSWER]
    for transcript in transcripts:
        plan = transcript_plan(transcript)
        yield Subject(transcript.name, plan, _replaying(transcript, second_answer))
    for chat in simulated_chats():
        yield Subject(f"simulated/{chat.name}", chat.plan(), _simulating(chat))


def _replaying(transcript: Transcript, second_answer: Transcript) -> OpenServer:
    def open_server() -> AbstractAsyncContextManager[Server]:
        return ReplayServer(
            transcript.name,
            transcript.responses,
            second_answer.responses[0],
            transcript.resumed,
        )

    return open_server


class _RecordingSimulator:
    """A simulator whose requests are written down as those of the replay server."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.base_url = simulator.base_url

    @property
    def requests(self) -> list[Json]:
        """Return what came in, with the status of the answer."""
        return [
            {
                "method": request.method,
                "path": request.path,
                "body": request.body,
                "status": request.status,
            }
            for request in self._simulator.requests
        ]


def _simulating(chat: SimulatedChat) -> OpenServer:
    @asynccontextmanager
    async def open_server() -> Any:
        async with Simulator(clock=lambda: NOON) as simulator:
            simulator.faults.extend(chat.faults)
            yield _RecordingSimulator(simulator)

    return open_server


def _silence_logs() -> None:
    """Write no log; it is no part of an outcome.

    A host never closes a pipe, so its sessions end with their loop, with a warning.
    """
    warnings.simplefilter("ignore", ResourceWarning)
    logging.disable(logging.CRITICAL)
