"""Starts a conversation in a terminal."""

import sys

from gpt5_agent.terminal.conversation import run_conversation

sys.exit(run_conversation())
