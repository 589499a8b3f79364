"""Refusals for what a chat is about, for the tier, and for the limit of the account.

No one can or should cause them for a check: each says what a key would have to meet.
The bodies are those with which the simulator is asked for the same refusal.
"""

from live_cases.case import Case

_GUIDE = "guide Safety checks: misalignment monitoring, 2026-11-10"
_MONITORED = "it needs a key of a monitored model and an answer that is stopped"
_CYBER = (
    "it needs a key without access for security work and a question that is flagged"
)

SAFETY_CASES = (
    Case(
        "an answer that the monitoring stops",
        {"input": "sim:misaligned-first"},
        _GUIDE,
        status=403,
        code="misalignment_policy_violation",
        message="blocked by our safety systems",
        untried=_MONITORED,
    ),
    Case(
        "a question that is flagged, as 403",
        {"input": "sim:cyber-403"},
        "codex 0.158",
        status=403,
        code="cyber_policy",
        untried=_CYBER,
    ),
    Case(
        "a question that is flagged, as 400",
        {"input": "sim:cyber-400"},
        "codex 0.158",
        code="cyber_policy",
        untried=_CYBER,
    ),
    Case(
        "the flex tier without capacity",
        {"input": "sim:flex-unavailable", "service_tier": "flex"},
        "openai/codex 47967",
        status=429,
        code="flex_unavailable",
        untried="it needs a key at a moment when the flex tier is full",
    ),
    Case(
        "a request above the rate limit of a minute",
        {"input": "sim:too-large-first"},
        "recorded in a stream; the status is assumed",
        status=429,
        code="rate_limit_exceeded",
        message="Request too large .* Limit [0-9]+, Requested [0-9]+",
        untried="it needs a key whose limit of tokens is smaller than one request",
    ),
    Case(
        "a question that Azure's filter refuses",
        {"input": "sim:prompt-filtered"},
        "reports of Azure's users",
        param="prompt",
        code="content_filter",
        untried="it needs a key of Azure and a question that is filtered",
    ),
)
