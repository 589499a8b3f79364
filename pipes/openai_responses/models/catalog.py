"""The table of models, generated from `scripts/catalog/models.json`; do not edit.

Facts as of 2026-11-22. A dated snapshot has a row only where it differs from its model.
Prices are US dollars for a million tokens at the standard tier: input, cached, cache_write, output, fast, ultrafast, ultrafast_until, ultrafast_later.
"""

# ruff: noqa: E501 - one model a line reads as a table

CATALOG_TABLE = """
model|efforts|default_effort|traits|context|max_output_tokens|prices|shutdown|successor
chatgpt-4o-latest|||vision||||2026-02-17|gpt-5.5
chatgpt-image-latest|||||||2026-12-01|gpt-image-2.6-sunburst or -flare
codex-mini-latest|||reasoning summary functions vision||||2026-02-12|gpt-5.4-mini
gpt-3.5-turbo|||functions|16385|4096||2026-10-23|gpt-5.6-terra
gpt-3.5-turbo-0125|||functions|16385|4096||2026-10-23|gpt-5.6-terra
gpt-3.5-turbo-1106|||functions|16385|4096||2026-09-28|gpt-5.6-terra
gpt-4|||functions|8192|4096||2026-10-23|gpt-5.6-sol
gpt-4-0125-preview|||functions||||2026-03-26|gpt-5.6-sol
gpt-4-0314|||functions||||2026-03-26|gpt-5.6-sol
gpt-4-0613|||functions|8192|4096||2026-10-23|gpt-5.6-sol
gpt-4-1106-preview|||functions|128k|4096||2026-10-23|gpt-5.6-sol
gpt-4-turbo|||functions vision|128k|4096||2026-10-23|gpt-5.6-sol
gpt-4-turbo-preview|||functions||||2026-03-26|gpt-5.6-sol
gpt-4.1|||functions hosted vision|1047576|32768|2 0.5 - 8 1.75|2027-01-14|gpt-6-luna
gpt-4.1-mini|||functions hosted vision|1047576|32768|0.4 0.1 - 1.6|2027-01-14|gpt-6-luna
gpt-4.1-nano|||functions vision|1047576|32768||2026-10-23|gpt-5.6-luna
gpt-4o|||functions hosted vision|128k|16384|2.5 1.25 - 10|2027-01-14|gpt-6-luna
gpt-4o-2024-05-13|||functions hosted vision|128k|4096||2026-10-23|gpt-5.6-sol
gpt-4o-mini|||functions hosted vision|128k|16384|0.15 0.075 - 0.6|2027-01-14|gpt-6-luna
gpt-5|minimal some|medium|full|400k|+|1.25 0.125 - 10 2|2026-12-11|gpt-6.1-sol
gpt-5-chat-latest|||vision|128k|16384||2026-07-23|gpt-5.5
gpt-5-codex|some|medium|usual|400k|+||2026-07-23|gpt-5.4
gpt-5-mini|minimal some|medium|full|400k|+|0.25 0.025 - 2 1.8|2026-12-11|gpt-6.1-terra
gpt-5-nano|minimal some|medium|full -web_search|400k|+|0.05 0.005 - 0.4|2026-12-11|gpt-6-luna
gpt-5-pro|high|high|full -code_interpreter|400k|272000|15 - - 120|2026-12-11|gpt-6.1-sol-pro
gpt-5.1|none some|none|full|400k|+|1.25 0.125 - 10 2|2027-04-01|gpt-6.1-sol
gpt-5.1-chat-latest|medium|medium|reasoning summary verbosity functions vision|128k|16384||2026-07-23|gpt-5.5
gpt-5.1-codex|some|medium|usual|400k|+||2026-07-23|gpt-6.1-sol
gpt-5.1-codex-max|some xhigh|medium|usual|400k|+||2026-07-23|gpt-5.4
gpt-5.1-codex-mini|some|medium|usual|400k|+||2026-07-23|gpt-5.4-mini
gpt-5.2|none some xhigh|none|full|400k|+|1.75 0.175 - 14 2||
gpt-5.2-chat-latest|medium|medium|reasoning summary verbosity functions vision|128k|16384||2026-08-10|gpt-5.5
gpt-5.2-codex|some xhigh||usual|400k|+||2026-07-23|gpt-5.4
gpt-5.2-pro|medium high xhigh|medium|full|400k|+|21 - - 168||
gpt-5.3-chat-latest|medium|medium|reasoning summary verbosity functions vision|128k|16384||2026-08-10|gpt-5.5
gpt-5.3-codex|none some xhigh|none|usual|400k|+|1.75 0.175 - 14|2027-04-01|gpt-6.1-sol
gpt-5.4|none some xhigh|none|5.4|1050k|+|2.5 0.25 - 15 2||
gpt-5.4-mini|none some xhigh|none|5.4|400k|+|0.75 0.075 - 4.5 2||
gpt-5.4-nano|none some xhigh|none|5.4|400k|+|0.2 0.02 - 1.25|2027-04-01|gpt-6-luna
gpt-5.4-pro|medium high xhigh|medium|5.4|1050k|+|30 - - 180||
gpt-5.5|none some xhigh|medium|5.4|1050k|+|5 0.5 - 30 2.5||
gpt-5.5-pro|medium high xhigh|medium|5.4|1050k|+|30 - - 180||
gpt-5.6-cyber|none more|medium|5.6 pro_mode|400k|+|12.5 1.25 15.625 75||
gpt-5.6-luna|none more|medium|5.6 pro_mode|1050k|+|0.2 0.02 0.25 1.2 2||
gpt-5.6-sol|none more|medium|5.6 pro_mode|1050k|+|4 0.4 5 20 2||
gpt-5.6-terra|none more|medium|5.6 pro_mode|1050k|+|2 0.2 2.5 12 2||
gpt-6-astra|more|medium|6 pro_mode|1050k|+|10 1 12.5 50 2 6||
gpt-6-astra-law|more||6 pro_mode|1050k|+|10 1 - 50||
gpt-6-cyber|||6|||||
gpt-6-luna|none more|medium|6 pro_mode|1050k|+|0.1 0.01 0.125 0.5 2||
gpt-6-rosalind|||6|1050k|+|15 1.5 18.75 75||
gpt-6-sol|none more|medium|6 pro_mode|1050k|+|2 0.2 2.5 10 2||
gpt-6.1-sol|more|medium|6 pro_mode|1050k|+|2 0.1 2.5 10 2 6||
gpt-6.1-terra|none more|medium|6 pro_mode|1050k|+|1 0.05 1.25 5 2||
gpt-6.2-astra|more||6.2|1050k|+|8 0.4 10 40 2||
gpt-6.2-astra-law|||6.2|||||
gpt-6.2-sol|more||6.2|1050k|+|2 0.1 2.5 10 2 3 20270228 6||
gpt-daybreak-blue-latest|||usual long_prices|1050k|+|4 0.4 5 20||
gpt-daybreak-red-latest|||usual long_prices|400k|+|12.5 1.25 15.625 75||
gpt-image-1-mini|||||||2026-12-01|gpt-image-2.6-sunburst or -flare
gpt-image-1.5|||||||2026-12-01|gpt-image-2.6-sunburst or -flare
gpt-rosalind-research|||usual|||5 0.5 - 25||
o1|some|medium|reasoning functions vision|200k|100000||2026-10-23|gpt-5.6-sol
o1-pro|some|medium|reasoning functions vision|200k|100000||2026-10-23|gpt-5.6-sol-pro
o3|some|medium|usual|200k|100000|2 0.5 - 8|2026-12-11|gpt-6.1-sol
o3-deep-research|some|medium|reasoning summary hosted vision -image_generation|200k|100000||2026-07-23|gpt-5.4-pro
o3-mini|some|medium|reasoning summary functions|200k|100000||2026-10-23|gpt-5.6-sol
o3-pro|some|medium|usual -code_interpreter|200k|100000|20 - - 80|2026-12-11|gpt-6.1-sol-pro
o4-mini|some|medium|usual -image_generation|200k|100000||2026-10-23|gpt-5.6-terra
o4-mini-deep-research|some|medium|reasoning summary hosted vision -image_generation|200k|100000||2026-07-23|gpt-5.4-pro
"""

CATALOG_WORDS: dict[str, str] = {
    "some": "low medium high",
    "more": "some xhigh max",
    "usual": "reasoning summary functions hosted vision",
    "full": "usual verbosity",
    "5.4": "full all_turns long_prices regional",
    "5.6": "5.4 appends_tools diagnostics",
    "6": "5.6 appends_configuration",
    "6.2": "6 prefix_bound",
}
"""Words for several efforts, or several traits; a number is the first version of gpt
that has them."""

CATALOG_SERVED_AS: dict[str, str] = {
    "gpt-5.6": "gpt-5.6-sol",
}
"""Ids that the API itself serves with another model.

gpt-5.6: OpenAI resolves the short id itself (openai-docs).
"""

CATALOG_ALIASES: dict[str, str] = {
    "gpt-5-auto": "gpt-6.1-sol",
}
"""Names of ours that are never sent.

gpt-5-auto: gpt-5-chat-latest, its first target, is gone; this replaces gpt-5 (openai-deprecations).
"""
