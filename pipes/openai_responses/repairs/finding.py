"""Finds the repair of a request that was refused.

No one knows all that a server may refuse, so what to change is found from what the
refusal names (`refusal`). Only few refusals name nothing and are known by their words
(docs/reference/responses-api.md, "Refusals of input items" and "Errors").

If nothing is named, less and less of the chat is sent (`blind_repair`). Such a step may
coincide with a server that recovers, so it helps one request and teaches nothing:
`TriedRepair.is_lasting` is true only for what rests on a code, a parameter or a place that
exists in the request, or on words that the request could not have said.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

from openai_responses.appended import APPENDED, declared_tools
from openai_responses.causes import (
    IMAGE_CODES,
    NO_CREDIT_CODES,
    NO_ROUTE,
    REJECTED,
    is_about_address,
)
from openai_responses.endings import MESSAGES, cause_word, refusal_word
from openai_responses.errors import (
    UNREAD_REASONING,
    UNREADABLE_STREAM,
    ApiError,
    Failure,
)
from openai_responses.items import (
    ADDED_TOOLS,
    INSTRUCTING,
    Item,
    answer_as_text,
    has_plain_reasoning,
    is_call_output,
    is_hosted,
    is_hosted_tool,
    is_paired,
    item_type,
    json_digest,
    tool_name,
    with_item_id,
)
from openai_responses.json_input import as_mapping, as_text, value_at
from openai_responses.models.resolve import REASONING_EFFORTS
from openai_responses.repairs.chat_repairs import (
    CallsAsWords,
    LeaveOutImages,
    LeaveOutItem,
    LeaveOutKind,
    LeaveOutPlainReasoning,
    LeaveOutReasoning,
    PlainItems,
    SendAsText,
    WordsAlone,
    has_media,
    is_from_user,
    item_names,
    plain_item,
)
from openai_responses.repairs.refusal import Refusal, SentRequest, outer_name
from openai_responses.repairs.request_repairs import (
    GUARDS,
    MAY_BE_LEFT_OUT,
    PERMIT_NOTHING,
    AnswersAsTexts,
    AskForStream,
    AskToContinue,
    GatherInstructions,
    JoinMessages,
    LeaveOutBackground,
    LeaveOutEmptyTexts,
    LeaveOutField,
    LeaveOutFunctions,
    LeaveOutOptions,
    LeaveOutParameter,
    LeaveOutTool,
    LeaveOutToolChoice,
    LeaveOutToolField,
    LimitMedia,
    LowerItems,
    LowerLimit,
    MoveMessages,
    OfferFunctionsAlone,
    PlainSchemas,
    Repair,
    ReplaceEffort,
    SeparateCalls,
    ShortCallIds,
    ShortenDescriptions,
    StateDetail,
    StateIds,
    StateInstructions,
    TextOutputs,
    count_media,
    value_digest,
    whole_tools,
)
from openai_responses.retries import CLOUDFLARE_STATUS, is_passing

MAX_REPAIRS = 3
"""Of one response that refusals may name, before less of the chat is sent."""

_OTHER_CAUSES = frozenset(
    {*range(300, 400), 401, 402, 403, 405, 407, 408, 409, 413, 421, 423, 425, 429}
    | {451, 499}
)
"""Statuses that are not about what the request says."""
_UNPAID = 402
_CONTENT_TOO_LARGE = 413
_REQUEST_TOO_LARGE = "request_too_large"
_TROUBLE = frozenset({502, 503, 504, 529, *CLOUDFLARE_STATUS})
"""Statuses of a server that may recover before the next request."""
_UNCLEAR_CAUSES = frozenset({200, 400, 404, 422, 501})
"""Statuses of refusals that may be about the chat although nothing is named."""
_GATEWAYS = frozenset({502, 503})
"""Statuses with which gateways repeat that the server behind them refused the request
(continuedev/continue 13261, BerriAI/litellm 18442)."""
_CHECKED_CAUSES = frozenset({400, 422, 501})
"""Statuses with which servers refuse a body before they ask the model."""
_CAUSES_THAT_STAY = (
    NO_CREDIT_CODES | MESSAGES["failed"].keys() | MESSAGES["refused"].keys()
) - {*IMAGE_CODES, UNREAD_REASONING, "404"}
"""Codes of causes that no change of the request removes."""
_REASONING_NOT_TAKEN = (
    # A model that does not reason (openai/openai-python 2364).
    r"reasoning input items can only be provided"
    # Reasoning without what it led to, or the other way round (continuedev/continue
    # 8933, 11994; recorded, 986), and an id that would have to be looked up
    # (anomalyco/opencode 7724). What a strict server gets has ids that no item of the
    # request has yet (`strict_payload`), so they lead to no item.
    r"|provided without its required|Items are not persisted when"
    r"|Referenced reasoning item \S{1,200} was not found"
    # Azure, of the reasoning of more than one response (NousResearch/hermes-agent
    # 101243, 106718).
    r"|Conflicting authenticated continuation"
    # What has a code at OpenAI has another one, or none, at Copilot and OpenRouter; the
    # rest is xAI's and OpenCode's (caozhiyuan/copilot-api 363, hackerai-tech/hackerai
    # 996, chenyme/grok2api 688, can1357/oh-my-pi 11928).
    r"|encrypted content (?s:.{1,200})could not be verified"
    r"|could not (decrypt the provided encrypted_content|decode the compaction blob)"
    r"|encrypted_content\W{1,3}was not issued to this caller"
    # Google, behind OpenRouter (tailcallhq/forgecode 2305, anomalyco/opencode 4832).
    r"|thought signature is not valid|corrupted thought signature"
    r"|thought_signature' \(TYPE_BYTES\)"
    # Anthropic; Bedrock (linanwx/nagobot 21).
    r"|invalid `?signature`? in `?thinking`? block|thinking\.signature: field required"
    r"|each thinking block must contain thinking"
    r"|`redacted_thinking` blocks in the latest assistant message cannot be modified"
)
_REASONING_IS_MISSING = (
    # Also of the calls that a gateway has made of those for Anthropic (decolua/9router
    # 2397).
    r"(?:reasoning_(?:text|content)|content\[\]\.thinking)`?\s+in the thinking mode must be "
    r"passed back"
    # Kimi; Anthropic and Gemini, behind LiteLLM and OpenRouter.
    r"|reasoning_content is missing in assistant tool call message"
    r"|assistant message with tool_calls must include reasoning_content"
    r"|missing `?reasoning_content`? field"
    r"|expected `thinking` or `redacted_thinking`, but found `(?:tool_use|text)`"
    r"|is missing a `?thought_signature"
)
"""What DeepSeek says of a call without the thought before it (rikkahub 1629, 1690)."""
_CONTAINER = r"\b(?:expected )?container(?:_id|s? is expired)?"
"""What the API says of the container of earlier code. "Container is expired." names no
place; "Expected container_id: cntr_..." a chat met in every further turn
(pydantic/pydantic-ai 7461)."""
_NOT_DECLARED = "not found in 'tools'"
"""Before gpt-5.6 a choice cannot name a tool that only an item declares: "Tool choice 'x'
not found in 'tools' parameter." (pydantic-ai 2.68.0)"""
_CALLS_APART = (
    # Anthropic; Google; servers of Chat Completions.
    r"ids were found without `?tool_result`? blocks immediately after"
    r"|function call turn comes immediately after"
    r"|number of function response parts is equal to the number of function call parts"
    r"|assistant message with '?tool_calls'? must be followed by tool messages"
    r"|invalid Gemini function call history"
    # DashScope; MiniMax (anomalyco/opencode 32614, Kilo-Org/kilocode 3967).
    r"|messages with role \W?tool\W? must be a response to a prece"
    r"|tool call result does not follow tool call|tool call and result not match"
    r"|tool result's tool id\(\S{1,80}\) not found"  # at its `/responses`, too
    # Mistral, and its templates: also of a question after a result.
    r"|not the same number of function calls and responses"
    r"|unexpected role 'user' after role 'tool'"
    # Bedrock and Anthropic, behind Portkey, LiteLLM (BerriAI/litellm 5277, 23510).
    r"|number of toolResult blocks at \S{1,40} exceeds the number of toolUse blocks"
    r"|expected toolResult blocks at \S{1,40} for the following ids"
    r"|tool_use\W{0,2} ids must be unique"
)
"""What others say of it, or of calls that a gateway has torn apart."""
_TOOLS_ARE_MISSING = (
    # Anthropic; Bedrock; LiteLLM.
    r"`?tool_result`? blocks must define tools|toolConfig field must be defined"
    r"|tool calling without `tools=` param"
)
"""What servers say of earlier calls in a chat that has no tools any more."""
_TEXT_BEFORE_OUTPUT = r"No tool output found for (tool|function) call\b"
"""What DeepSeek says of a text between a call and its output (recorded), and of nothing
that a request lacks: calls and outputs are sent in pairs."""
_SEES_NOTHING = (
    r"image inputs?(?: modality)? (?:is|are) not (?:supported|enabled)"
    r"|\bdo(?:es)? not support image(?:s\b| input)"
    r"|No endpoints found that support image input"
    # vLLM; LM Studio; Together; xAI; DeepSeek.
    r"|is not a multimodal model|at most 0 image|unknown variant `image_url`"
    # Bedrock; OpenAI's older models.
    r"|doesn't support the image field|image_url is only supported by certain models"
    # DashScope, of a model that reads texts alone; a gateway to such.
    r"|Unexpected item type in content"
    r"|image blocks are not supported"
)
"""What llama.cpp says of an image to a model without eyes, with a status of 500
(recorded); LiteLLM passes it on. Ollama's and OpenRouter's words come with 400 and 404
(ollama/ollama 17301)."""
_TOO_MANY_IMAGES = (
    # vLLM; Azure, DeepSeek ("54 > 30"), Groq and new-api; Anthropic, also of pages.
    r"\bat most \d{1,4} image"
    r"|\btoo (?:many images|much media)\b[^\n]{0,90}"
    # Meta (anomalyco/opencode 47721); Agnes (AgnesAI-Labs/AgnesCode 61); Mistral.
    r"|\b\d{1,4} images, exceeding the maximum\b[^\n]{0,30}"
    r"|\bimage count \d{1,4} exceeds\b[^\n]{0,30}"
    r"|\bnumber of images exceeds\b[^\n]{0,40}"
)
"""What servers say of more images than they take in one request; one more screenshot ends
a chat for good (anomalyco/opencode 48715). How many they take is a number that is smaller
than that of the images in the request: most name both."""
_OUTPUT_LIMIT = (
    # OpenAI; Anthropic; DeepSeek, DashScope; Bedrock; Groq; Google names the next number.
    r"supports at most (\d{2,7}) (?:completion|output) tokens"
    r"|max_tokens: \d{1,9} > (\d{2,7}), which is the maximum"
    r"|range of max_tokens (?:is|should be) \[\d{1,3}, ?(\d{2,7})\]"
    r"|maximum tokens you requested exceeds the model limit of (\d{2,7})"
    r"|\bmax_(?:completion_)?tokens\b[^\n]{0,80}? must be less than or equal to `?(\d{2,7})"
    # OpenAI; Volcengine.
    r"|\bmax_(?:output_)?tokens\b[^\n]{0,80}? integer above maximum value[.,] "
    r"expected a value <= (\d{2,7})"
    # Novita (cline/cline 8337).
    r"|\bmax_tokens \(current value: \d{1,9}\) must be between \d{1,3} and (\d{2,7})"
    r"|maxOutputTokens value of \d{1,9} but the supported range is from 1 \(inclusive\) "
    r"to (?P<above>\d{2,7}) \(exclusive\)"
)
"""What servers say of a longer answer than their model can write."""
_AFFORDABLE = r"requested up to \d{1,9} tokens, but can only afford (\d{1,9})\b"
"""What OpenRouter says, with a status of 402, of an answer that could cost more than
the account has (can1357/oh-my-pi 9569)."""
_LEAST_AFFORDABLE = 1000
"""Tokens; with fewer an answer would break off."""
_ROOM_LEFT = (
    # Anthropic; vLLM; SGLang; OpenRouter (openclaw/openclaw 85921), DeepSeek; vLLM.
    r"exceed context limit: (?P<input>\d{1,8}) \+ \d{1,8} > (?P<window>\d{1,8})"
    r"|\(\d{1,8} > (\d{1,8}) - (\d{1,8})\)"
    r"|length of (\d{1,8}) tokens\. You requested a total of \d{1,8} tokens: (\d{1,8})"
    r" tokens from the input"
    r"|context length is (\d{1,8}) tokens\. However, you requested (?:about )?(\d{1,8}) "
    r"tokens \([^()\n]{0,80}?\b(\d{1,8}) in the (?:output|completion)\)"
    r"|context length is (\d{1,8}) tokens\. However, you requested \d{1,8} output tokens "
    r"and your prompt contains at least (\d{1,8}) input tokens"
)
"""What they say of one that does not fit after the input: the next is longer."""
_LEAST_OUTPUT = 16
"""Tokens; the API accepts no lower limit."""
_KEY_ERROR = re.compile(r"'\w{1,40}'")
"""What vLLM says, with a status of 500, of an item or an image that it did not expect: a
field that its own code missed (vllm-project/vllm 55974)."""
_UNHANDLED = "Internal Server Error"
"""What servers made with Starlette say, as a bare text, of an exception that their authors
did not expect: Agent Framework's helpers raise one for the data of a file (1.0.0a261022)."""
_NO_IMAGE_DEPLOYMENT = (
    r"imagegen deployment must be provided|x-ms-oai-image-generation-deployment"
)
"""What Azure says of drawing without its header (openai/codex 31815)."""
_NOT_TOGETHER = (
    r"function calling cannot be combined in the same request"
    r"|tool use with function calling is unsupported"
    r"|multiple tools are supported only when they are all search tools"
    r"|\binclude_server_side_tool_invocations to use built-in tools"
)
"""What Gemini says of its own tools next to functions; alone it takes them. The last two:
googleapis/js-genai 1157 and 1425, BerriAI/litellm 26882."""
_EFFORT_WITH_TOOLS = "Function tools with reasoning_effort"
"""What OpenAI says of an effort in Chat Completions, which a gateway may use. Of
gpt-5.6 also of none, because that model has an effort of its own (BerriAI/litellm
34569)."""
_OWN_EFFORT = "medium"
"""The effort of a model that thinks without being asked."""
_MUST_THINK = (
    r"reasoning is mandatory for this endpoint|only works in thinking mode"
    r"|always engages in thinking and cannot be disabled"
)
"""What OpenRouter, Google and Z.AI say of no effort for a model that always thinks."""
_LONGEST_TEXT = r"\bstring with maximum length (\d{1,6})\b"
"""What the API says of a text that is too long, whose place it names."""
_LACKS_ID = r"\bmissing field `id`"
"""What servers in Rust say of an item, whose place they name."""
_TOO_MANY_ITEMS = "array_above_max_length"
_OF_THE_SCHEMA = "invalid_payload"
"""Azure's code at the address of a project, of reasoning without an id
(NousResearch/hermes-agent 63257, Azure/azure-sdk-for-net 59967)."""
_SKILLS: Sequence[tuple[str, Sequence[Repair]]] = (
    (
        # Ollama; OpenRouter, with a status of 404; vLLM without a parser; older servers
        # of llama.cpp, with a status of 500; Groq; LiteLLM.
        r"does not support tools\b|found that support tool use|--tool-call-parser to be set"
        r"|tool choice requires --enable-auto-tool-choice|tools param requires --jinja"
        r"|tool calling`? is not supported|does not support parameters: \['tools'"
        # OpenAI, in Chat Completions, which a gateway may use (julep-ai/julep 1542).
        r"|\btools (?:is|are) not supported (?:in|by|with|for) this model",
        [LeaveOutFunctions()],
    ),
    (
        # llama.cpp, of search and Python as well as of tools of Codex; small gateways;
        # MiniMax (decolua/9router 2509).
        r"'type' of tool must be 'function'|only \W?function\W? tools are supported"
        r"|\binvalid tool type\b",
        [OfferFunctionsAlone()],
    ),
    (
        # Ollama and Google, of a model that does not reason.
        r"does not support thinking\b|thinking budget is not supported"
        r"|\bthink value \S{1,20} is not supported",
        [LeaveOutParameter("reasoning.effort")],
    ),
    (
        # Of a choice that forces a call of a model that thinks: DeepSeek; DashScope;
        # Kimi; Anthropic; vLLM, of gpt-oss; LiteLLM, of `allowed_tools`.
        r"does not support this tool_choice|tool_choice parameter does not support being "
        r"set|tool_choice '?\w{1,20}'? is incompatible with thinking"
        r"|may not be enabled when tool_choice forces tool use"
        r"|only 'auto' (or 'none' )?tool_choice is supported"
        r"|invalid tool choice, tool_choice=",
        [LeaveOutToolChoice()],
    ),
    (
        # Codex's own server, and the gateways to it; DashScope, of models that think.
        r"stream must be set to true|only supports? stream mode"
        r"|enable_thinking must be set to false for non-streaming calls",
        [AskForStream()],
    ),
    (
        # Small servers and gateways (FMXExpress/PasClaw 62).
        r"\bstreaming is not (?:\w{2,10} )?supported|\bnot support streaming\b",
        [LeaveOutParameter("stream")],
    ),
    # OpenRouter, of a model whose providers take none of them (hotovo/aider-desk 404).
    (
        # Not of a model that only draws: it lacks the text of any answer.
        rf"{NO_ROUTE} that (?:can handle|support)(?! the requested output modalities)",
        [LeaveOutOptions(), LeaveOutFunctions()],
    ),
    # OGX (1.5.0), of a streamed answer that lasts longer than its connection.
    (
        r"not yet support 'stream' and 'background' together",
        [LeaveOutBackground()],
    ),
    # Templates of Llama's models, of two calls without an output in between
    # (vllm-project/vllm 25108).
    (r"only supports single tool-calls at once", [SeparateCalls()]),
    (
        # Mistral; its templates, at mlx-lm and others. Anthropic, of a model's ids that
        # have other signs (farion1231/cc-switch 1181).
        r"must be a-z, A-Z, 0-9, with a length of 9\b"
        r"|Tool call IDs should be alphanumeric strings with length 9\b"
        r"|tool_use[._]id: String should match pattern",
        [ShortCallIds()],
    ),
    # Copilot, of some of its models (caozhiyuan/copilot-api 362).
    (r"image detail has to be either 'low' or 'high'", [StateDetail()]),
    (
        # Templates of Qwen's and Mistral's models; llama.cpp, vLLM and Fireworks pass it
        # on with a status of 400 or 500 (ggml-org/llama.cpp 20733).
        r"system message must be at the beginning"
        # Of the role of a developer, which no template of that time knows.
        r"|unexpected message role|roles are supported, got developer"
        r"|unexpected role '?developer|unexpected role 'system' after role"
        # DeepSeek; DashScope and Azure's DeepSeek; SiliconFlow and Mistral.
        r"|unknown variant `developer`|\bdeveloper is not one of \["
        # MiniMax (BigPizzaV3/CodexPlusPlus 267).
        r"|invalid message role: (?:system|developer)\b"
        r"|input tag 'developer' found using 'role'",
        [GatherInstructions()],
    ),
    # Codex's own server, of a request without the field (vybestack/llxprt-code 1197).
    (r"\binstructions are required\b", [StateInstructions()]),
    (
        # Templates of Gemma and Mistral, and Perplexity, of two questions in a row.
        r"conversation roles must alternate|should alternate with assistant message",
        [JoinMessages(), TextOutputs(shows_images=False)],
    ),
    (
        # Anthropic; llama.cpp, of a model that thinks, and of two answers; Mistral.
        r"conversation must end with a user message"
        r"|prefill is incompatible with enable_thinking"
        r"|2 or more assistant messages at the end of the list"
        r"|final assistant content cannot end with trailing whitespace"
        r"|expected last role user or tool\b"
        # Perplexity; Google.
        r"|last message must have role .?user|single turn requests end with a user role"
        r"|requests ending with a model turn are not supported",
        [AskToContinue()],
    ),
    (
        # llama.cpp; Ollama; vLLM; OpenAI, of a model; DashScope (QwenLM/qwen-code 1888).
        r"'input_file' is not supported|\bfile inputs are not (?:currently )?supported"
        r"|\bunknown part type: input_file|does not support file content types"
        r"|\binvalid value: file\. supported values are:"
        # Volcengine (farion1231/cc-switch 1519).
        r"|\binvalid value: `(?:document|input_file)`, supported values are:",
        [LimitMedia("input_file", 0)],
    ),
    # Anthropic takes large images as long as there are no more (letta-ai/letta-code 615).
    (r"max allowed size for many-image requests", [LimitMedia("input_image", 20)]),
    (
        # Of the image of a tool: llama.cpp (ggml-org/llama.cpp 23465), older servers of
        # Ollama (ollama/ollama 15406), Google (google-gemini/gemini-cli 19436), LM Studio
        # behind a gateway (lmstudio-ai/lmstudio-bug-tracker 1878).
        r"Output of tool call should be 'Input text'"
        r"|FunctionCallOutput\.output of type string"
        r"|`function_response\.parts` is not supported for this model"
        r"|Only text tool_result blocks are supported",
        [TextOutputs()],
    ),
    (
        # llama.cpp and vLLM, of a schema that they cannot make a grammar of, or of a
        # template that knows no tools; Google; Volcengine; Moonshot; Anthropic, by a
        # number among its own tools.
        r"JSON schema conversion failed|failed to (?:initialize samplers|parse grammar)"
        r"|automatic parser generation failed|features not supported by xgrammar"
        r"|input_schema: JSON schema is invalid|input_schema does not support oneOf"
        r"|schema produces a constraint that has too many states"
        r"|invalid decoding guidance syntax|invalid function format: unhashable"
        r"|is not a valid moonshot flavored json schema"
        r"|JSON Schema not supported: could not understand",
        [PlainSchemas(), LeaveOutFunctions()],
    ),
    (
        # Of a text without a word, such as that of an image alone: Anthropic; Bedrock;
        # Moonshot; xAI; Google.
        r"text content blocks must (?:be non-empty|contain non-whitespace)"
        r"|cache_control cannot be set for empty text blocks"
        r"|(?:text|content) field in the \w{1,20} object at \S{1,60} is (?:blank|empty)"
        r"|message at position \d{1,5} with role '\w{1,20}' must not be empty"
        r"|each message must have at least one content element"
        r"|must include at least one parts field|\bcontents\.parts must not be empty"
        r"|\bmodel input cannot be empty",
        [LeaveOutEmptyTexts()],
    ),
)
"""What servers say of what they, or their model, cannot do, and the repairs of it."""
_HIDDEN_CAUSE = "Upstream request failed"
"""What sub2api says, with a status of 502 or in a stream, whatever OpenAI refused: mostly
reasoning, because its next account cannot read that of the last one (Wei-Shaw/sub2api
3038)."""
_BLAMES_ANOTHER = frozenset({200, 405, 500})
"""Statuses of another cause, with which servers also tell what a model cannot do
(DeepInfra says 405 of a model that calls no tools)."""
_MAX_NAME = 64
"""Characters of a name that are kept for the message."""
_OF_ITS_SCHEMA = r"\bschema\b|\]\.parameters\b"
"""What is in the words about a tool whose parameters are refused."""
_UNREACHED = "retrieving tool list"
"""What the API writes of a remote MCP server that may be there again soon."""


class TriedRepair(NamedTuple):
    """A repair that is tried, and remembered if it is seen to help."""

    repair: Repair
    error: ApiError = ApiError()
    """The refusal that it answers."""
    is_named: bool = False
    """Whether the server's own `param` names what is changed, and no user wrote it."""
    is_lasting: bool = True
    """Whether it is known that later requests would be refused as well."""
    helped_at_once: bool = False
    """Whether the request with this repair was accepted."""


def may_be_repaired(failure: Failure) -> bool:
    """Say whether a failure is about what the request says."""
    if failure.error.code == UNREAD_REASONING:
        return True  # at Copilot with the status of a wrong key
    if failure.status in _OTHER_CAUSES or is_passing(failure.error):
        return False
    return not failure.error.is_any_of(_CAUSES_THAT_STAY)


def find_repair(
    sent: SentRequest, failure: Failure, named: int = 0
) -> TriedRepair | None:
    """Return what a refusal of `sent` names; None if that is nothing to change.

    `named` is how many repairs earlier refusals of the same response have named.
    """
    if failure.status is None or named >= MAX_REPAIRS:  # None: no server said anything
        return None
    refusal = Refusal(failure.error, sent)
    candidates: Iterator[TriedRepair] = iter(())
    if failure.status == _CONTENT_TOO_LARGE or failure.error.code == _REQUEST_TOO_LARGE:
        candidates = _by_size(refusal)
    elif may_be_repaired(failure):
        candidates = _candidates(refusal)
    elif failure.status in _BLAMES_ANOTHER:
        candidates = chain(_by_missing_thought(refusal), _by_lacking_skills(refusal))
    elif failure.status == _UNPAID:
        # A shorter answer is what the account can pay for.
        affordable = refusal.says(_AFFORDABLE)
        if affordable and int(affordable[1]) >= _LEAST_AFFORDABLE:
            limit = LowerLimit(int(affordable[1]), is_of_account=True)
            candidates = iter([TriedRepair(limit, is_lasting=False)])
    # A gateway may pass on with such a status what another server refused.
    is_trouble = failure.status in _TROUBLE and not failure.error.is_relayed
    may_pass = is_trouble or NO_ROUTE in failure.error.message
    for tried in candidates:
        if _is_worth_trying(tried.repair, sent):
            is_lasting = tried.is_lasting and not may_pass
            return tried._replace(error=failure.error, is_lasting=is_lasting)
    return None


def blind_repair(
    sent: SentRequest,
    failure: Failure,
    *,
    knows_options: bool = False,
    took_options: bool = False,
) -> TriedRepair | None:
    """Return the next step that may help although nothing is named, None after the last.

    It is taken when the same request was refused again. No step of it is remembered:
    the server may have been in trouble, and recovered meanwhile. `knows_options` says
    that the server's models and what they take are known: then options stay, as they
    are not the cause. Those that the server took with another chat go late.
    """
    steps = _blind_steps(
        failure,
        Refusal(failure.error, sent),
        knows_options=knows_options,
        took_options=took_options,
    )
    for repair in steps:
        if _is_worth_trying(repair, sent):
            return TriedRepair(repair, failure.error, is_lasting=False)
    return None


def _blind_steps(
    failure: Failure, refusal: Refusal, *, knows_options: bool, took_options: bool
) -> list[Repair]:
    """Return the steps of `blind_repair`; those that keep most of the chat come first."""
    error = failure.error
    status = failure.status or 0
    last = refusal.sent.last_name
    if error.code == UNREADABLE_STREAM:
        return [LeaveOutParameter("stream")]
    if error.is_any_of({"upstream_error"}) and error.message == _HIDDEN_CAUSE:
        return [LeaveOutReasoning(last)]
    has_files = bool(_numbers_of_media(refusal.sent))
    word = refusal_word(status, error)
    if not _may_be_about_chat(failure, refusal, word, has_files=has_files):
        return []

    # Other servers refuse options and tools before they ask the model. To tune an
    # answer matters less than the chat, and tools matter more.
    plain: list[Repair] = [
        LeaveOutPlainReasoning(),
        PlainItems(last, has_files),
        WordsAlone(last),
    ]
    names_a_part = error.names_a_place or bool(refusal.parameter)
    # Its status alone tells no cause.
    is_told = names_a_part or word not in ("", str(status), "5")
    if status in _CHECKED_CAUSES and not knows_options and not is_told:
        steps = [*plain, AnswersAsTexts()]  # all that changes in a chat of texts
        # What the server took before is hardly the cause now.
        steps.insert(len(steps) if took_options else 0, LeaveOutOptions())
        return [*steps, OfferFunctionsAlone(), LeaveOutFunctions()]
    # If the list of tools is the cause, and no tool is named: few other servers have
    # tools of their own, and the functions may matter more.
    if outer_name(refusal.parameter) != "tools":
        return plain
    fewer: list[Repair] = [OfferFunctionsAlone()]
    if refusal.parameter == "tools" and _UNREACHED not in error.message:
        fewer += [PlainSchemas(), LeaveOutFunctions()]
    return [*fewer, *plain]


def _may_be_about_chat(
    failure: Failure, refusal: Refusal, word: str, *, has_files: bool
) -> bool:
    """Say whether less of the chat may remove a refusal that names nothing.

    `word` is that of its message.
    """
    error = failure.error
    status = failure.status
    if status == 500:
        is_unhandled = error.is_bare_text and error.message == _UNHANDLED and has_files
        is_unclear = is_unhandled or _KEY_ERROR.fullmatch(error.message) is not None
    else:
        is_behind = error.is_relayed and cause_word(error) == REJECTED
        is_refusal = status in _UNCLEAR_CAUSES or (is_behind and status in _GATEWAYS)
        is_unclear = is_refusal and may_be_repaired(failure)
    # The words of a chat are too many: they are most of it. Too many items become fewer.
    is_too_long = word == "context_length_exceeded" and error.code != _TOO_MANY_ITEMS
    stays = is_too_long or word in ("model_not_found", _REQUEST_TOO_LARGE)
    # A parameter that guards stays, and with it the refusal.
    guards = GUARDS & refusal.sent.payload.keys()
    if not is_unclear or stays or outer_name(refusal.parameter) in guards:
        return False
    # A 404, also of a bridge in a stream: is the address or the model wrong?
    is_missing = status == 404 or error.status == 404
    if not is_missing or error.names_a_place:
        return True
    is_of_the_api = error.type == "invalid_request_error"
    names_model = "model" in error.message.lower()
    return is_of_the_api and not names_model and not is_about_address(error)


def _is_worth_trying(repair: Repair, sent: SentRequest) -> bool:
    """Say whether a repair is new, and changes what was sent.

    An effort that an earlier repair took away is not given back.
    """
    if repair in sent.repairs:
        return False
    if isinstance(repair, ReplaceEffort):
        for earlier in sent.repairs:
            if isinstance(earlier, ReplaceEffort) and earlier.refused == repair.allowed:
                return False
    return repair.applies(sent)


def _candidates(refusal: Refusal) -> Iterator[TriedRepair]:
    """Yield what may help, the best first."""
    last = refusal.sent.last_name
    if refusal.says(_REASONING_IS_MISSING):
        yield from _by_missing_thought(refusal)
        return  # it wants more reasoning, not less
    yield from _by_words(refusal, _TOOLS_ARE_MISSING, CallsAsWords(last))
    # A gateway that sends each of several calls on by itself can send each result, too.
    together = (MoveMessages(), SeparateCalls(), CallsAsWords(last))
    yield from _by_words(refusal, _CALLS_APART, *together)
    # A server that names its `reasoning` field may mean what it is sent back, or what it
    # is asked for: the first costs a chat less. Words alone are no knowledge.
    if "reasoning" in refusal.error.text.lower():
        is_named = "reasoning" in refusal.named_parameter
        yield TriedRepair(LeaveOutPlainReasoning(), is_lasting=is_named)
    yield from _by_lacking_skills(refusal)
    # LM Studio, of a result or an answer with parts (lmstudio-bug-tracker 2248, 1064).
    if refusal.error.code == "invalid_union" and refusal.error.param == "input":
        yield TriedRepair(TextOutputs())
        yield TriedRepair(AnswersAsTexts())
    if refusal.error.code == _OF_THE_SCHEMA:
        yield TriedRepair(StateIds())
    if refusal.error.code in (_OF_THE_SCHEMA, UNREAD_REASONING):
        yield TriedRepair(LeaveOutReasoning(last))
    code_runs = LeaveOutKind(last, "code_interpreter_call")
    yield from _by_words(refusal, _CONTAINER, code_runs)
    yield from _by_words(refusal, _TEXT_BEFORE_OUTPUT, MoveMessages())
    # "Supported values are" is followed by the types that the server does take.
    refused = refusal.words.partition("upported values")[0]
    for kind in sorted(APPENDED):
        if kind in refused:
            # Every request with the item has its bare type.
            is_lasting = refusal.is_own_phrase(f"'{kind}'")
            yield TriedRepair(LowerItems(kind), is_lasting=is_lasting)
    yield from _by_words(refusal, _NOT_DECLARED, LowerItems(ADDED_TOOLS))
    yield from _by_place(refusal)
    for number in refusal.numbers_of_addresses:
        yield from _without_item(refusal, number)
    # The refusal of an image may name no place. Of several images the newest is a guess,
    # which must not cost the chat another.
    if refusal.error.code in IMAGE_CODES:
        numbers = _numbers_of_media(refusal.sent)
        for number in numbers[-1:]:
            for tried in _without_item(refusal, number):
                yield tried._replace(is_lasting=len(numbers) == 1)
    for number in refusal.numbers_of_ids:
        yield from _without_item(refusal, number)
    yield from _by_words(refusal, _REASONING_NOT_TAKEN, LeaveOutReasoning(last))
    yield from _by_parameter(refusal)
    for tool in refusal.tools:  # that the words name by its name, label or type
        yield from _without_tool(refusal, tool)
    for tool in declared_tools(refusal.sent.payload):
        if tool.get("type") == "image_generation":
            drawing = [tried.repair for tried in _without_tool(refusal, tool)]
            yield from _by_words(refusal, _NO_IMAGE_DEPLOYMENT, *drawing)


def _by_words(refusal: Refusal, phrase: str, *repairs: Repair) -> Iterator[TriedRepair]:
    """Yield repairs if the words of a refusal have a phrase."""
    said = refusal.says(phrase)
    if said:
        is_lasting = refusal.is_own_phrase(said[0])
        for repair in repairs:
            yield TriedRepair(repair, is_lasting=is_lasting)


def _by_place(refusal: Refusal) -> Iterator[TriedRepair]:
    """Yield the repairs of the item or the tool that is named."""
    place = refusal.place
    if place is None:
        return
    is_named = refusal.has_named_place
    tool = place.value if place.list_name == "tools" else place.inner_tool
    if tool is not None:
        longest = refusal.says(_LONGEST_TEXT)
        if longest and place.keys[-1:] == ("description",):
            shorter = ShortenDescriptions(int(longest[1]))
            is_lasting = refusal.is_own_phrase(longest[0])
            yield TriedRepair(shorter, is_named=is_named, is_lasting=is_lasting)
        # The tool's own field is the first name, and one inside of it the last.
        for key in place.keys[:1] + place.keys[-1:]:
            if refusal.is_unknown:
                yield TriedRepair(LeaveOutToolField(key), is_named=is_named)
        yield from _without_tool(refusal, tool, is_named=is_named)
        return
    kind = item_type(place.value)
    is_instructing = place.value.get("role") in INSTRUCTING
    if is_instructing and place.keys == ("role",):
        yield TriedRepair(GatherInstructions(), is_named=is_named)
    names_id = place.keys == ("id",) or refusal.says(_LACKS_ID)
    if names_id and with_item_id(place.value) != place.value:
        yield TriedRepair(StateIds(), is_named=is_named)
    # The server wants a text there, or names the types of parts that it takes.
    if place.keys in (("output",), ("output", "type")):
        yield TriedRepair(TextOutputs(), is_named=is_named)
    if place.keys[-1:] == ("detail",) and {"low", "high"} & refusal.quoted_words:
        yield TriedRepair(StateDetail(), is_named=is_named)
    if refusal.is_unknown:
        # What a user wrote may have the field by that user's choice.
        is_the_models = not is_from_user(place.value)
        repair = LeaveOutField(kind, place.keys)
        yield TriedRepair(repair, is_named=is_named and is_the_models)
    yield from _without_item(refusal, place.number, is_named=is_named)


def _without_tool(
    refusal: Refusal, tool: Item, *, is_named: bool = False
) -> Iterator[TriedRepair]:
    """Yield the repairs of a tool; a server that is not reached may be back soon.

    A tool whose schema is refused is kept with a simpler one. If the next is refused,
    there may be many: one MCP server has made them all.
    """
    sent = refusal.sent
    name = tool_name(tool)[:_MAX_NAME]
    is_of_schema = refusal.place and "parameters" in refusal.place.keys
    if is_of_schema or refusal.says(_OF_ITS_SCHEMA):
        known = {row.name for row in sent.repairs if isinstance(row, PlainSchemas)}
        if name not in known:
            yield TriedRepair(PlainSchemas("" if known else name), is_named=is_named)
    # It is remembered by its own schema, also after a repair that made that simpler.
    own = tool
    for whole in whole_tools(sent):
        is_same_type = whole.get("type") == tool.get("type")
        if is_same_type and tool_name(whole)[:_MAX_NAME] == name:
            own = whole
    is_lasting = _UNREACHED not in refusal.words
    repair = LeaveOutTool(json_digest(own), name)
    yield TriedRepair(repair, is_named=is_named, is_lasting=is_lasting)


def _without_item(
    refusal: Refusal, number: int, *, is_named: bool = False
) -> Iterator[TriedRepair]:
    """Yield the repairs of one item; what users wrote always stays."""
    name, item = refusal.sent.items[number]
    if not name and has_media(item):
        yield from _without_results_images(refusal.sent, number)
    kind = item_type(item)
    if kind in APPENDED:
        yield TriedRepair(LowerItems(kind), is_named=is_named)
        return
    if has_plain_reasoning(item):
        yield TriedRepair(LeaveOutPlainReasoning())
        return
    noun = kind.replace("_", " ")[:_MAX_NAME]
    if has_media(item):
        yield TriedRepair(SendAsText(name, noun, had_media=True))
    elif kind == "message" and plain_item(item) != item:
        yield TriedRepair(SendAsText(name, noun))
    # A client may have written the answer, and all answers of others would change.
    if answer_as_text(item) != item:
        yield TriedRepair(AnswersAsTexts())
    has_left_out = any(
        isinstance(repair, LeaveOutItem) for repair in refusal.sent.repairs
    )
    if is_hosted(item) and has_left_out:  # a known type, so its name is short
        # One after the other would be refused; a long chat may have many.
        yield TriedRepair(LeaveOutKind(refusal.sent.last_name, kind))
    if not is_from_user(item):
        yield TriedRepair(LeaveOutItem(name, noun, keeps_words=is_paired(item)))


def _without_results_images(sent: SentRequest, number: int) -> Iterator[TriedRepair]:
    """Yield the repairs of the results whose images a message shows (`TextOutputs`).

    It stands right after them, and is no item of the chat that could be named.
    """
    asked = sent.asked["input"]
    named = zip(item_names(asked), asked, strict=True)
    with_images = {name for name, item in named if has_media(item)}
    results = takewhile(lambda row: is_call_output(row.item), sent.items[:number][::-1])
    for name, _ in results:
        if name in with_images:
            yield TriedRepair(SendAsText(name, "result", had_media=True))


def _by_missing_thought(refusal: Refusal) -> Iterator[TriedRepair]:
    """Yield the repair for a model that wants the thought of each call back."""
    # Until the question after the calls of earlier turns. If there are none, the calls of
    # this turn are meant, up to the last item.
    end = refusal.sent.last_name
    has_calls = False
    for name, item in refusal.sent.items:
        has_calls = has_calls or is_paired(item)
        if has_calls and item.get("role") == "user":
            end = name
    yield from _by_words(refusal, _REASONING_IS_MISSING, CallsAsWords(end))


def _by_lacking_skills(refusal: Refusal) -> Iterator[TriedRepair]:
    """Yield the repairs for what a model or a server cannot do at all."""
    if _numbers_of_media(refusal.sent):
        yield from _by_words(refusal, _SEES_NOTHING, LeaveOutImages())
        too_many = refusal.says(_TOO_MANY_IMAGES)
        if too_many:
            # Anthropic adds pages of files: "30 document pages + 80 images > 100".
            numbers = re.findall(r"\b\d{1,4}\b", too_many[0].rpartition(">")[2])
            count = count_media(refusal.sent.payload["input"], "input_image")
            most = max((n for n in map(int, numbers) if n < count), default=0)
            if most:
                newest = LimitMedia("input_image", most)
                yield from _by_words(refusal, _TOO_MANY_IMAGES, newest)
    limit = refusal.says(_OUTPUT_LIMIT)
    if limit:
        most = int(limit[limit.lastindex or 0]) - bool(limit["above"])
        yield from _by_words(refusal, _OUTPUT_LIMIT, LowerLimit(most))
    room = refusal.says(_ROOM_LEFT)
    if room:
        first, second, *output = [int(number) for number in room.groups() if number]
        left = second - first if room["window"] else first - second
        left += sum(output)
        if left >= _LEAST_OUTPUT:
            yield TriedRepair(LowerLimit(left), is_lasting=False)
    effort = value_digest(refusal.sent.payload, "reasoning.effort")
    refused_effort = LeaveOutParameter("reasoning.effort", effort)
    yield from _by_words(refusal, _MUST_THINK, refused_effort)
    for phrase, repairs in _SKILLS:
        yield from _by_words(refusal, phrase, *repairs)
    for tried in _by_words(refusal, _NOT_TOGETHER, OfferFunctionsAlone()):
        yield tried._replace(is_lasting=False)


def _by_size(refusal: Refusal) -> Iterator[TriedRepair]:
    """Yield the oldest images and files, neither the question's own nor the newest.

    A chat grows by images until a gateway takes no more of it (lidge-jun/opencodex 987,
    caozhiyuan/copilot-api 257), and would be refused from then on.
    """
    items = refusal.sent.payload["input"]
    questions = [n for n, item in enumerate(items) if item.get("role") == "user"]
    asked = max(questions, default=0)
    numbers = _numbers_of_media(refusal.sent)
    for number in numbers:
        if number != asked and number < max(asked, numbers[-1]):
            yield from _without_item(refusal, number)


def _numbers_of_media(sent: SentRequest) -> list[int]:
    items = sent.payload["input"]
    return [number for number, item in enumerate(items) if has_media(item)]


_REPAIRS_OF_PARAMETERS: Mapping[str, Repair] = {
    "tool_choice": LeaveOutToolChoice(),
    "background": LeaveOutBackground(),
    "instructions": StateInstructions(),  # a request that has them stays as it is
    **{key: LeaveOutToolField(key) for key in PERMIT_NOTHING},
}


def _by_parameter(refusal: Refusal) -> Iterator[TriedRepair]:
    """Yield the repair of a parameter; one that guards stays."""
    payload = refusal.sent.payload
    path = refusal.parameter
    is_named = path == refusal.named_path
    outer = outer_name(path)
    # Each field of these two goes on its own, but the format, which LM Studio lacks
    # (lmstudio-bug-tracker 1576).
    if outer not in ("reasoning", "text") or path == "text.format":
        path = outer
    if path in _REPAIRS_OF_PARAMETERS:
        yield TriedRepair(_REPAIRS_OF_PARAMETERS[path], is_named=is_named)
    if path in MAY_BE_LEFT_OUT:
        is_any = refusal.is_unknown
        if path == "reasoning.effort":
            yield from _by_effort(refusal, is_named=is_named)
            # If what the server named in its place is refused as well, no value is taken.
            asked = value_at(payload, "reasoning", "effort")
            is_any = is_any or any(
                isinstance(repair, ReplaceEffort) and repair.allowed == asked
                for repair in refusal.sent.repairs
            )
        refused_value = "" if is_any else value_digest(payload, path)
        yield TriedRepair(LeaveOutParameter(path, refused_value), is_named=is_named)
    elif refusal.is_unknown and refusal.parameter == "tools":  # not one of them
        for fewer in (LeaveOutFunctions(), OfferFunctionsAlone()):
            yield TriedRepair(fewer, is_named=is_named)
    elif refusal.is_unknown:
        # xAI names a field of a search like a parameter (`external_web_access`).
        for tool in declared_tools(payload):
            inner = chain.from_iterable(map(as_mapping, tool.values()))
            has_field = path in {*tool, *inner} - {"type"}
            if has_field and is_hosted_tool(tool):
                yield from _without_tool(refusal, tool, is_named=is_named)


def _by_effort(refusal: Refusal, *, is_named: bool) -> Iterator[TriedRepair]:
    """Yield the effort that is nearest to the refused one, or none next to tools."""
    quoted = refusal.quoted_words
    of_tools = _EFFORT_WITH_TOOLS in refusal.words
    asked = as_text(value_at(refusal.sent.payload, "reasoning", "effort"))
    wanted = asked or (_OWN_EFFORT if of_tools else "")
    # If it takes no tools with its own effort either, it may with none.
    nearest = "none" if of_tools and not asked else ""
    if wanted in REASONING_EFFORTS:
        rank = REASONING_EFFORTS.index
        # The API lists what the model has: "Supported values are: 'low', 'medium', ..."
        others = [each for each in REASONING_EFFORTS if each in quoted - {wanted}]
        nearest = min(
            others, key=lambda each: abs(rank(each) - rank(wanted)), default=nearest
        )
    # A model that takes `default` thinks or does not, and knows no amounts.
    if of_tools or (nearest and "default" not in quoted):
        repair = ReplaceEffort(asked, nearest, of_tools)
        yield TriedRepair(repair, is_named=is_named)
