"""Runs cases, each with a server, a pipe and an event loop of its own."""

import asyncio
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
class Case:
    """A chat with one of the two files, read in one of the ways of a host.

    Its server has a transcript's answers, or is the simulator.
    """

    subject: str
    plan: ChatPlan
    open_server: OpenServer
    shell: Shell
    reader: Any

    @property
    def name(self) -> str:
        return f"{self.shell}/{self.subject}/{self.reader.name}"


class GoldenRun:
    """The two built files under test."""

    def __init__(self, pipe: Path, pipeline: Path, functions: HostFunctions) -> None:
        self._functions = functions
        self._modules = {"pipe": load_pipe(pipe), "agents": load_pipeline(pipeline)}
        self._valves = {"pipe": ValveReader(), "agents": ValveReader()}

    def outcomes(self, streams: Path, wanted: str) -> Iterator[tuple[str, str]]:
        """Yield each case whose name contains `wanted` with its outcome.

        No log is written; it is no part of an outcome.
        """
        skip_waiting(True)
        # A host never closes a pipe, so its sessions end with their loop.
        warnings.simplefilter("ignore", ResourceWarning)
        logging.disable(logging.CRITICAL)
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
        kind = PipeChat if case.shell == "pipe" else AgentChat
        async with asyncio.timeout(_CASE_SECONDS), case.open_server() as server:
            chat: PipeChat | AgentChat = kind(
                self._modules[case.shell],
                server,
                self._functions,
                case.reader,
                case.plan,
                self._valves[case.shell],
            )
            return await chat.run()


def _cases(streams: Path) -> Iterator[Case]:
    for subject, plan, open_server in _subjects(streams):
        for pipe_reader in PIPE_READERS:
            yield Case(subject, plan, open_server, "pipe", pipe_reader)
        # The agents' loop is in a thread, where the time that a stall takes is real.
        if subject not in STALLING:
            for agent_reader in AGENT_READERS:
                yield Case(subject, plan, open_server, "agents", agent_reader)


def _subjects(streams: Path) -> Iterator[tuple[str, ChatPlan, OpenServer]]:
    """Yield the name of each chat, what it asks, and who answers."""
    transcripts = read_transcripts(streams)
    [second_answer] = [each for each in transcripts if each.name == SECOND_ANSWER]
    for transcript in transcripts:
        open_server = partial(ReplayServer, transcript, second_answer.responses[0])
        yield transcript.name, transcript_plan(transcript), open_server
    for chat in simulated_chats():
        yield f"simulated/{chat.name}", chat.plan(), partial(_simulate, chat)


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
