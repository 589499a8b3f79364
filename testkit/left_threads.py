"""Ends a run of tests although a thread never ends.

Python waits for its threads before it exits, so a test that hangs in one would fail
under its name, and the run would stand still for ever afterward.
"""

import os
import sys
import threading
import time
import traceback

GRACE_SECONDS = 5.0
"""For what ends by itself."""


def exit_soon(status: int) -> None:
    """Let Python exit as always; if it cannot, say which threads are left, and exit."""
    threading.Thread(target=_exit_later, args=(status,), daemon=True).start()


def _exit_later(status: int) -> None:
    time.sleep(GRACE_SECONDS)
    frames = sys._current_frames()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            print(f"\nleft running: thread {thread.name}", file=sys.stderr)
            traceback.print_stack(frames.get(thread.ident or 0), file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 1)
