"""Servers of the Responses API that are not OpenAI's, with pretended models behind."""
