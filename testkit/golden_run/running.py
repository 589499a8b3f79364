"""Runs cases, each with a server, a pipe and an event loop of its own."""

import asyncio
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from event_loops.idle_clock import IdleClockLoop, skip_waiting
from golden_run.agent_chats import AGENT_READERS, AgentChat
from golden_run.built_files import ValveReader, load_pipe, load_pipeline
from golden_run.cases import SimulatedChat, simulated_chats, transcript_plan
from golden_run.normal_form import normal_form
from golden_run.pipe_chats import PIPE_READERS, ChatPlan, PipeChat, Server
from golden_run.replay_server import STALLING, ReplayServer
from golden_run.transcripts import read_transcripts
from hosts.servers.functions import HostFunctions
from simulator import Simulator

Json = dict[str, Any]
OpenServer = Callable[[], AbstractAsyncContextManager[Server]]
Shell = Literal["pipe", "agents"]

NOON = 1_795_262_400.0
SECOND_ANSWER = "hello"
"""The transcript that answers whatever is asked after a run."""
_CASE_SECONDS = 7200
"""Seconds of the loop's clock, which jumps over waiting."""


@dataclass(frozen=True)
class Subject:
    """A chat that takes place: with a transcript's answers or with the simulator."""

    name: str
    plan: ChatPlan
    open_server: OpenServer


@dataclass(frozen=True)
class Case:
    """A subject in one of the two files, read in one of the ways of a host."""

    subject: Subject
    shell: Shell
    reader: Any

    @property
    def name(self) -> str:
        """The name under which the outcome is written."""
        return f"{self.shell}/{self.subject.name}/{self.reader.name}"


class GoldenRun:
    """The two built files under test."""

    def __init__(self, pipe: Path, pipeline: Path, functions: HostFunctions) -> None:
        self._pipe: ModuleType = load_pipe(pipe)
        self._pipeline: ModuleType = load_pipeline(pipeline)
        self._functions = functions
        self._valves = {"pipe": ValveReader(), "agents": ValveReader()}

    def outcomes(self, streams: Path, wanted: str) -> Iterator[tuple[str, str]]:
        """Yield each case whose name contains `wanted` with its outcome."""
        skip_waiting(True)
        _silence_logs()
        for case in _cases(streams):
            if wanted in case.name:
                yield case.name, self._run(case)

    def unknown_settings(self) -> list[str]:
        """Return the settings of the cases that neither file knows."""
        dropped = [reader.dropped for reader in self._valves.values()]
        return sorted(set.intersection(*dropped))

    def _run(self, case: Case) -> str:
        with asyncio.Runner(loop_factory=IdleClockLoop) as runner:
            try:
                return normal_form(runner.run(self._run_chat(case)))
            except Exception as error:
                return f"The case raised {error!r}\n"

    async def _run_chat(self, case: Case) -> Json:
        async with (
            asyncio.timeout(_CASE_SECONDS),
            case.subject.open_server() as server,
        ):
            is_pipe = case.shell == "pipe"
            kind = PipeChat if is_pipe else AgentChat
            chat: PipeChat | AgentChat = kind(
                self._pipe if is_pipe else self._pipeline,
                server,
                self._functions,
                case.reader,
                case.subject.plan,
                self._valves[case.shell],
            )
            return await chat.run()


def _cases(streams: Path) -> Iterator[Case]:
    for subject in _subjects(streams):
        for pipe_reader in PIPE_READERS:
            yield Case(subject, "pipe", pipe_reader)
        # The agents' loop is in a thread, where the time that a stall takes is real.
        if subject.name not in STALLING:
            for agent_reader in AGENT_READERS:
                yield Case(subject, "agents", agent_reader)


def _subjects(streams: Path) -> Iterator[Subject]:
    transcripts = read_transcripts(streams)
    by_name = {transcript.name: transcript for transcript in transcripts}
    second_answer = by_name[SECOND_ANSWER]
    for transcript in transcripts:
        open_server = partial(
            ReplayServer,
            transcript.name,
            transcript.responses,
            second_answer.responses[0],
            transcript.resumed,
        )
        yield Subject(transcript.name, transcript_plan(transcript), open_server)
    for chat in simulated_chats():
        open_simulator = partial(_simulate, chat)
        yield Subject(f"simulated/{chat.name}", chat.plan(), open_simulator)


class RecordingSimulator:
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


@asynccontextmanager
async def _simulate(chat: SimulatedChat) -> AsyncIterator[RecordingSimulator]:
    async with Simulator(clock=lambda: NOON) as simulator:
        simulator.faults.extend(chat.faults)
        yield RecordingSimulator(simulator)


def _silence_logs() -> None:
    """Write no log; it is no part of an outcome.

    A host never closes a pipe, so its sessions end with their loop, with a warning.
    """
    warnings.simplefilter("ignore", ResourceWarning)
    logging.disable(logging.CRITICAL)
