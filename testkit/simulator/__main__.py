"""Run the stand-in by hand: ``python -m simulator``."""

import argparse
import asyncio
import contextlib

from simulator import options
from simulator.accounts import PROFILES
from simulator.scenarios.catalog import ALL_SCENARIOS
from simulator.scenarios.scenario import describe_scenarios
from simulator.server import Simulator


def main() -> None:
    """List the scenarios, or run until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="simulator", description=__doc__)
    parser.add_argument(
        "--list", action="store_true", help="print the scenarios and their options"
    )
    parser.add_argument("--port", type=int, default=8402, help="0 takes a free one")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="strictest")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(describe_scenarios(ALL_SCENARIOS)))
        print(f"\n{options.__doc__}")
        return
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run_server(arguments.port, arguments.profile))


async def run_server(port: int, profile: str) -> None:
    """Serve until interrupted."""
    async with Simulator(profile, port=port) as simulator:
        print(f"base URL  {simulator.base_url}")
        print(f"key       {simulator.api_key}")
        print(f"profile   {profile}: {simulator.profile.summary}")
        print("Put sim:NAME into a message to choose what happens:\n")
        print("\n".join(describe_scenarios(ALL_SCENARIOS)), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
