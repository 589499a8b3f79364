"""Measure what a stream costs with one and with two processes of Open WebUI.

python scripts/bench/scale.py                200 streams, in about 8 minutes
python scripts/bench/scale.py --streams 40   the same, coarser, in about 4 minutes

The figures of docs/scale.md. Both connections answer the same crowd, in processes of
their own, on PostgreSQL and Redis. A process of its own and a worker of a server
(`UVICORN_WORKERS`) are the same here: nothing but the port is shared.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.crowd import PAUSE_MS, Crowd, measure_streams, streams
from bench.host import goal_line, parse_options, run_simulator, table
from bench.inside import NATIVE, PIPE

PROCESSES = (1, 2)
TITLE = "Streams at once, {streams} of {deltas} deltas, one every {pause} ms"
COLUMNS = ("native", "pipe", "x native")


def main() -> None:
    """Print the table, then the goal."""
    options = parse_options(
        __doc__,
        streams=(200, "at once"),
        deltas=(300, f"in each of them, one every {PAUSE_MS} ms"),
    )
    seconds = options.deltas * PAUSE_MS / 1e3
    rows: dict[str, list[str]] = {}
    with run_simulator() as address:
        for processes in PROCESSES:
            crowds: dict[str, Crowd] = {}
            for model in (NATIVE, PIPE):
                kind = streams(model, options.deltas)
                measured = measure_streams(address, kind, options.streams, processes)
                crowds[model] = asyncio.run(measured)
            rows |= crowd_rows(processes, crowds, seconds)
    title = TITLE.format(streams=options.streams, deltas=options.deltas, pause=PAUSE_MS)
    print(table(title, COLUMNS, rows))
    for name, (_, _, ratio) in rows.items():
        if name.endswith("streams a core"):
            print(goal_line(f"{name} at least native's", float(ratio) >= 1, ratio))


def crowd_rows(
    processes: int, crowds: Mapping[str, Crowd], seconds: float
) -> dict[str, list[str]]:
    """Return what both connections took, with so many `processes`.

    A core carries as many streams of so many `seconds` as their CPU fits into it.
    """
    figures: dict[str, list[float]] = {
        "streams a core": [seconds * len(c.firsts) / c.cpu for c in crowds.values()],
        "CPU of a stream, ms": [c.cpu * 1e3 / len(c.firsts) for c in crowds.values()],
        "memory of a stream, kB": [
            (c.size.memory - c.size.memory_before) / len(c.firsts)
            for c in crowds.values()
        ],
        "memory before, MB": [c.size.memory_before / 1e3 for c in crowds.values()],
        "first text, ms": [median(c.firsts) for c in crowds.values()],
        "longest pause, ms": [c.gap.milliseconds for c in crowds.values()],
        "answers with a fault": [len(c.faults) for c in crowds.values()],
    }
    rows: dict[str, list[str]] = {}
    for name, (native, pipe) in figures.items():
        ratio = f"{pipe / native:.2f}" if native else ""
        rows[f"{processes}: {name}"] = [f"{native:,.0f}", f"{pipe:,.0f}", ratio]
    return rows


if __name__ == "__main__":
    main()
