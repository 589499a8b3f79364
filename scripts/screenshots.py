"""Make the README's pictures from the real Open WebUI with the pipe in it.

Started by `scripts/screenshots`, which sets up what is missing. The pipe is installed
by hand, on the pages that the README tells of; the simulator answers. What the model
says is made up, everything else is what a person sees.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import release
from hosts.browser.admin_pages import IMPORT_ERROR, AdminPages
from hosts.browser.chromium import Chromium
from hosts.browser.page import ChatPage
from hosts.browser.valves_dialog import fill_valves
from hosts.people.tabs import Tab
from hosts.people.uploads import attach
from hosts.people.users import EVERYBODY_READS
from hosts.servers.offline import BootError, host_python
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.pipelines_server import PipelinesServer
from hosts.setup.administration import administration
from hosts.setup.agent import (
    FUNCTION_CALLING,
    PIPELINE_ID,
    agent_valves_changed,
    connected,
    install_pipeline,
)
from hosts.setup.pipes import valves_changed
from hosts.setup.switches import SWITCHES
from hosts.setup.usage import MODELS as USED_MODELS
from hosts.setup.usage import add_made_up_use, made_up_people
from openai_responses.clock import utc_today
from releasing.contents import FUNCTIONS, MODELS, PIPE_ID
from simulator import Simulator
from tour import LAKE, install_lake

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs/pictures"
MODEL = f"{PIPE_ID}.gpt-6.1-sol"
AGENT_OF_PIPE = f"{PIPE_ID}.gpt5_function_calling"
SUBAGENTS = "/api/v1/configs/subagents"
SALES = b"""\
product,revenue
Tea from the mountains,48200
"Coffee, whole beans",24100
Cups and saucers,9300
Pots of iron and clay,6200
Books about tea,4700
"""
"""What the plots of the simulator show."""
PIPELINES_PORT = 9099
"""The server's own, which the documentation names."""
WIDE = {"width": 1100, "height": 760}
FLAT = {"width": 1100, "height": 340}
LIST = {"width": 1100, "height": 430}
MIDDLE = {"width": 1100, "height": 600}
TALL = {"width": 1100, "height": 880}
LARGEST = 200_000
"""Bytes of a picture."""
DOWNLOAD = "/usr/bin/python3 -m pip download --quiet --only-binary :all: -d"
NO_FOCUS = "() => document.activeElement?.blur()"
"""No ring around what was opened last."""
TO_THE_TOP = "() => { document.querySelector('#messages-container').scrollTop = 0; }"
ALL_IMAGES_LOADED = "() => [...document.images].every(image => image.complete)"
AGENT_SETTINGS = {
    "connections": "Manage OpenAI API Connections",
    "pipelines": "Instruction",
}
"""Pages of an administrator's settings, each with a text that it shows when all of it is
there."""
CHOSEN_PAGE = "[role=tab][aria-selected=true]"
"""In the list of all pages of the settings, of which a window shows a part."""
SUGGESTIONS = [{"title": ["Plan a swim", "in the lake"], "content": "Plan a swim."}]
"""One, which an open menu hides: of the usual ones it would hide a half."""
# Neither titles nor follow-ups: the simulator makes them up.
PLAIN = {
    "ENABLE_TITLE_GENERATION": "false",
    "ENABLE_FOLLOW_UP_GENERATION": "false",
    "DEFAULT_PROMPT_SUGGESTIONS": json.dumps(SUGGESTIONS),
}
# Pillow belongs to Open WebUI; flat pages need no more colors than a palette has.
PALETTE = """\
import sys
from PIL import Image

for path in sys.argv[1:]:
    picture = Image.open(path).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
"""


class PictureError(Exception):
    """A picture is not what the README can show."""


@dataclass(frozen=True)
class Studio:
    """A page, and where its pictures go."""

    chat: ChatPage
    folder: Path

    async def take(self, name: str, size: dict[str, int] | None = None) -> None:
        """One picture of what is on the page now."""
        page = self.chat.page
        await page.set_viewport_size(size or WIDE)  # type: ignore[arg-type]
        for toast in await page.locator("[data-sonner-toast]").all():
            await toast.wait_for(state="detached")
        await page.wait_for_function(ALL_IMAGES_LOADED)
        await page.evaluate(NO_FOCUS)
        await page.screenshot(
            path=self.folder / f"{name}.png", animations="disabled", caret="hide"
        )
        print(f"  {name}.png", flush=True)


async def make_pictures(folder: Path) -> None:
    """Install the pipe by hand, then chat; a picture at every step."""
    async with AsyncExitStack() as running:
        simulator = await running.enter_async_context(Simulator())
        server = await running.enter_async_context(OpenWebUI(env=PLAIN))
        chromium = await running.enter_async_context(Chromium())
        chat = await running.enter_async_context(ChatPage(server.admin, chromium))
        studio = Studio(chat, folder)
        files = Path(running.enter_context(TemporaryDirectory()))
        release.write(files)
        await show_installation(studio, simulator, files)
        await show_chat(studio, simulator)
        await show_switches(studio)
        await show_user_valves(studio)
        await show_picture(studio, simulator)
        await show_usage(studio, server)
        await show_agent_of_pipe(studio, simulator)
        await show_agent(studio, simulator)
        # Open WebUI's own, after the success of an import.
        errors = [error for error in chat.errors if not error.endswith(IMPORT_ERROR)]
        if errors:
            raise PictureError(f"The page had errors: {errors}")


async def show_installation(studio: Studio, simulator: Simulator, files: Path) -> None:
    """The steps of the README, with the files of a release."""
    pages = AdminPages(studio.chat)
    await pages.open_functions()
    await pages.open_create_menu()
    await studio.take("install-1-import", FLAT)
    await pages.page.keyboard.press("Escape")
    await pages.choose_functions(files / FUNCTIONS)
    await pages.import_functions()
    await pages.open_functions()
    dialog = await pages.open_valves(PIPE_ID)
    await fill_valves(pages.page, dialog, {"Api Key": simulator.api_key})
    await studio.take("install-2-key")
    await dialog.get_by_role("button", name="Close").click()
    # The picture needs no address, the simulator does.
    values = {"Base Url": simulator.base_url, "Api Key": simulator.api_key}
    await pages.set_valves(PIPE_ID, values)
    admin = studio.chat.user
    stands_for_openai = {"COMPATIBILITY": "openai"}
    await admin.set_valves(PIPE_ID, await admin.valves(PIPE_ID) | stands_for_openai)
    for function_id in (PIPE_ID, *SWITCHES):
        await pages.enable(function_id)
    await pages.page.mouse.move(0, 0)  # no underlined name
    await studio.take("install-3-enable", LIST)
    await pages.open_models()
    await pages.import_models(files / MODELS)
    await pages.open_models()  # the list keeps the icons from before an import
    await studio.take("install-4-models")


async def show_chat(studio: Studio, simulator: Simulator) -> None:
    """A question that takes thought, a tool and a search."""
    page = studio.chat.page
    admin = studio.chat.user
    await install_lake(admin, EVERYBODY_READS)
    simulator.default_scenario = "swim,delay=110"
    async with valves_changed(admin, PIPE_ID, ENABLE_WEB_SEARCH=True):
        await page.goto(f"{admin.url}/?models={MODEL}&tools={LAKE}")
        await page.wait_for_selector("#chat-input")
        await studio.chat.ask("Can I swim in the lake at Zürich this afternoon?")
    await page.get_by_text("Explored").first.click()
    await page.get_by_text("Thought for").first.click()
    await page.get_by_text("View Result from water_temperature").click()
    await studio.chat.answers.last.get_by_text("Output", exact=True).wait_for()
    await studio.take("chat", TALL)


async def show_switches(studio: Studio) -> None:
    """The menu next to the chat input."""
    page = studio.chat.page
    await studio.chat.open_model(MODEL)
    await page.locator("#integration-menu-button").click()
    await page.get_by_text("Search with OpenAI", exact=True).click()
    await studio.take("switches", MIDDLE)
    await page.get_by_text("Search with OpenAI", exact=True).click()
    await page.keyboard.press("Escape")


async def show_user_valves(studio: Studio) -> None:
    """What users may choose for themselves."""
    page = studio.chat.page
    await studio.chat.open_model(MODEL)
    await page.locator('button[aria-label="Valves"]').last.click()
    dialog = page.locator("[role=dialog]").last
    await dialog.get_by_text("Reasoning Effort").wait_for()
    await studio.take("user-valves")
    await dialog.get_by_role("button", name="Close").click()


async def show_picture(studio: Studio, simulator: Simulator) -> None:
    """A picture that the model drew."""
    simulator.default_scenario = "postcard,delay=110"
    async with valves_changed(studio.chat.user, PIPE_ID, ENABLE_IMAGE_GENERATION=True):
        await studio.chat.open_model(MODEL)
        await studio.chat.ask("Draw the lake in the evening.")
        drawn = studio.chat.answers.last.locator("img[src*='/files/']")
        await drawn.first.wait_for()
    await studio.take("picture", TALL)


async def show_usage(studio: Studio, server: OpenWebUI) -> None:
    """What a made-up month cost."""
    chat = studio.chat
    admin = chat.user
    async with administration(admin, USER_LIMITS_JSON="[]"):
        await admin.complete(MODEL, "/usage")  # makes the tables
        people = made_up_people(server, 40)
        add_made_up_use(server, people, USED_MODELS, utc_today())
        await chat.open_model(MODEL)
        await chat.ask("/usage")
        await chat.page.locator("svg.marks").nth(1).wait_for()
        await chat.page.evaluate(TO_THE_TOP)
        await studio.take("usage", TALL)


async def show_agent_of_pipe(studio: Studio, simulator: Simulator) -> None:
    """Its task list while it works, its sub-agents, and a plot of an attached table."""
    chat = studio.chat
    admin = chat.user
    subagents = await admin.call("GET", SUBAGENTS)
    await admin.call("POST", SUBAGENTS, {**subagents, "ENABLE_SUBAGENTS": True})
    simulator.default_scenario = "agent-crew,delay=300"
    await chat.open_model(AGENT_OF_PIPE)
    await chat.ask(
        "In which month was the lake warmest, in 2025 and in 2026?", wait=False
    )
    await chat.answers.last.get_by_text("Both found August.").wait_for()
    await chat.page.get_by_text("2 out of 3").first.wait_for()
    await studio.take("agent-6-list", MIDDLE)
    await chat.answers.last.get_by_text("4 rounds · 6 tool calls").wait_for()
    await chat.answers.last.get_by_text("Explored").first.click()
    await chat.answers.last.get_by_text("View Result from Sub-agent").last.click()
    await chat.answers.last.get_by_text("Output", exact=True).wait_for()
    await studio.take("agent-7-sub-agents", TALL)
    simulator.default_scenario = "agent-data"
    table = await attach(admin, "sales.csv", SALES, "text/csv")
    files = [table | {"context": "full"}]  # this server has no embeddings
    async with (
        valves_changed(admin, PIPE_ID, ENABLE_CODE_INTERPRETER=True),
        Tab(admin) as tab,
    ):
        question = "Which product earned the most? Plot it."
        body = {"files": files}
        turn = await tab.send(AGENT_OF_PIPE, question, files=files, body=body)
    await admin.update_chat(turn.chat_id, {"title": question})
    await chat.page.goto(f"{admin.url}/c/{turn.chat_id}")
    await chat.answers.last.locator("img[src*='/files/']").nth(1).wait_for()
    await chat.answers.last.get_by_text("Explored").last.click()
    await chat.page.wait_for_timeout(500)
    await studio.take("agent-8-data", TALL)


async def show_agent(studio: Studio, simulator: Simulator) -> None:
    """What the agents do, then their server and its settings."""
    page = studio.chat.page
    admin = studio.chat.user
    values = {
        "BASE_URL": simulator.base_url,
        "API_KEY": simulator.api_key,
        "COMPATIBILITY": "openai",  # the simulator stands for OpenAI
    }
    async with PipelinesServer(port=PIPELINES_PORT) as server:
        await install_pipeline(server, {})
        async with connected(admin, server):
            await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
            for number, (name, text) in enumerate(AGENT_SETTINGS.items(), 1):
                await page.goto(f"{admin.url}/admin/settings/{name}")
                await page.get_by_text(text).first.wait_for()
                await page.wait_for_timeout(500)
                await page.locator(CHOSEN_PAGE).last.scroll_into_view_if_needed()
                await studio.take(f"agent-{number}-{name}")
            await server.set_valves(PIPELINE_ID, values)
            await show_agent_work(studio, simulator, server)


async def show_agent_work(
    studio: Studio, simulator: Simulator, server: PipelinesServer
) -> None:
    """A plot with its file, a question with three choices, the steps of two tasks."""
    chat = studio.chat
    admin = chat.user
    with TemporaryDirectory() as wheels:
        download = [*DOWNLOAD.split(), wheels, "matplotlib"]
        await asyncio.to_thread(subprocess.run, download, check=True)
        more = {
            "SANDBOX": True,
            "SANDBOX_OPTIONS": json.dumps({"wheels": wheels}),
            "OPEN_WEBUI_URL": admin.url,
            "OPEN_WEBUI_API_KEY": admin.token,
            "DELEGATION": True,
            "TOOL_APPROVAL": "sandbox_fs_remove=ask",
        }
        async with agent_valves_changed(server, **more):
            simulator.default_scenario = "agent-plot,delay=30"
            await chat.open_model(FUNCTION_CALLING)
            await chat.ask("Plot the water temperatures of this year, with the table.")
            await chat.answers.last.get_by_text("temperatures.csv").wait_for()
            await studio.take("agent-3-plot", TALL)
            simulator.default_scenario = "agent-remove,delay=30"
            await chat.open_model(FUNCTION_CALLING)
            await chat.ask("Remove temperatures.csv from the workspace.", wait=False)
            await chat.page.get_by_text("May sandbox_fs_remove be called?").wait_for()
            await chat.page.mouse.move(0, 0)  # no tooltip
            await studio.take("agent-4-approval", MIDDLE)
            simulator.default_scenario = "agent-tasks,delay=30"
            await chat.open_model(FUNCTION_CALLING)
            await chat.ask("In which month was the lake warmest, in 2025 and in 2026?")
            await chat.answers.last.get_by_text("2 rounds · 2 tool calls").click()
            await chat.answers.last.get_by_text("Task 2: Step 2").wait_for()
            await studio.take("agent-5-tasks", TALL)


def shrink(folder: Path) -> None:
    """Write the pictures with a palette; none may stay large."""
    pictures = sorted(folder.glob("*.png"))
    command = [str(host_python()), "-c", PALETTE, *map(str, pictures)]
    subprocess.run(command, check=True)
    large = [path.name for path in pictures if path.stat().st_size > LARGEST]
    if large:
        raise PictureError(f"Larger than {LARGEST:,} bytes: {', '.join(large)}")


def main(arguments: list[str]) -> int:
    """Make all pictures; the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    parser.add_argument("--folder", type=Path, default=PICTURES, metavar="DIR")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(make_pictures(folder))
        shrink(folder)
    except (BootError, PictureError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
