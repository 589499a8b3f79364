"""What servers answered to requests that they refused, and what people are told of it.

The bodies were published with bug reports; ids and keys in them are replaced.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

QUOTA_CODES = (
    "credit_balance_exhausted",
    "insufficient_quota",
    "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "project_spend_limit_exceeded",
    "project_usage_limit_exceeded",
)
"""The codes of a used up quota, as the API names them."""


class RefusedBody(NamedTuple):
    """An answer of a server, and the message of the pipe about it."""

    status: int
    body: str
    message: str


CLOUDFLARE_PAGE = """<!DOCTYPE html>
<!--[if lt IE 7]> <html class="no-js ie6 oldie" lang="en-US"> <![endif]-->
<head>
<title>Attention Required! | Cloudflare</title>
<meta charset="UTF-8" />
</head>
<body><h1 data-translate="block_headline">Sorry, you have been blocked</h1></body>
</html>"""
NGINX_PAGE = (
    "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1>"
    "</center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
)
_MESSAGES = """
wrong key
    OpenAI does not accept the API key. An administrator has to check API_KEY in the
    valves of this pipe.
no credit
    The OpenAI account has no credit left, or has reached its spending limit. An
    administrator has to check its billing.
missing scope
    The API key is valid, but has no permission for this request: a scope, or a role in
    its project, is missing. An administrator has to check API_KEY in the valves of this
    pipe.
wrong organization
    The API key does not belong to the organization in the settings. An administrator
    has to check ORGANIZATION and API_KEY in the valves of this pipe.
country
    OpenAI does not answer requests from the country or region where this server is. The
    API key is not the cause. An administrator has to check PROXY in the valves of this
    pipe.
filtered
    OpenAI's content filter rejected this chat, so it was not answered. Rephrase the
    question, or start a new chat.
not for this key
    This API key may not use this model. Choose another model, or ask an administrator
    to change the rights of the key.
not there
    The model this model does not exist, has been shut down, has no Responses API, or is
    not available to this API key at this address. Choose another model.
unverified
    OpenAI does this only for verified organizations. An administrator has to verify the
    organization in its settings at OpenAI, or choose another model.
firewall
    A firewall or proxy in front of the model's server did not let this request through
    (HTTP {}). The API key is not the cause. If the problem persists, an administrator
    has to check BASE_URL and PROXY in the valves of this pipe.
gateway
    A gateway in front of the model's server answered in its place (HTTP {}), so the
    server may be down. Try again in a moment. If the problem persists, an administrator
    has to check BASE_URL in the valves of this pipe.
busy
    This API key has reached OpenAI's rate limit. Wait a minute, then try again.
overloaded
    OpenAI is overloaded. Try again in a moment.
broken inside
    OpenAI reported an internal error. Try again in a moment.
address
    There is no Responses API at the address of the model's server. An administrator has
    to check BASE_URL in the valves of this pipe.
image
    The model's server could not use an image in this chat. Remove it, or attach it
    again as PNG, JPEG, WEBP or GIF of a moderate size.
file
    The model's server could not use a file in this chat. Remove it, or attach it again
    as a PDF or as text.
too long
    This chat is longer than the model can read. Start a new chat, or choose a model
    with a larger context.
plan
    The OpenAI account has reached the usage limit of its plan. Try again in some hours
    or days.
tools
    This chat has more tools than the model's server accepts. Turn some of them off, or
    ask an administrator to do so.
unreadable model
    The model wrote something that its server could not read. Try again.
"""
_TABLE = r"""
# The name, the status, and the message by its name above; below them the body. Where a
# message is that of one body, it comes after it. A line that ends with a backslash goes
# on without a space.
# 401
wrong key | 401 | wrong key
    {"error":{"message":"Incorrect API key provided: sk-x***4711. You can find your API
    key at
    https://platform.openai.com/account/api-keys.","type":"invalid_request_error",\
    "param":null,"code":"invalid_api_key"}}
no error at all | 401 | wrong key
login page | 401 | wrong key
    <nginx 401 Authorization Required>
a server's type says nothing about a key | 401 | wrong key
    {"error":{"message":"No.","type":"server_error","code":null}}
words about a model say nothing about a key | 401 | wrong key
    {"detail":"token not found; this model does not exist"}
missing scope | 401 | missing scope
    {"error":{"message":"You have insufficient permissions for this operation. Missing
    scopes: api.responses.write. Check that you have the correct role in your
    organization (Reader, Writer, Owner) and project (Member, Owner), and if you're
    using a restricted API key, that it has the necessary
    scopes.","type":"invalid_request_error","param":null,"code":"missing_scope"}}
missing scope, told by LiteLLM | 401 | missing scope
    {"error":{"message":"litellm.AuthenticationError: AuthenticationError:
    OpenAIException - Missing scopes: api.responses.write. Received Model
    Group=gpt-5","type":null,"param":null,"code":"401"}}
mismatched organization | 401 | wrong organization
    {"error":{"message":"OpenAI-Organization header should match organization for API
    key","type":"invalid_request_error","param":null,"code":"mismatched_organization"}}
no such organization | 401 | wrong organization
    {"error":{"message":"No such organization:
    nedge.","type":"invalid_request_error","param":null,"code":"invalid_organization"}}
mismatched project | 401
    {"error":{"message":"OpenAI-Project header should match project for API
    key","type":"invalid_request_error","param":null,"code":"mismatched_project"}}
    => The API key does not belong to the project in the settings. An administrator has
    to check PROJECT and API_KEY in the valves of this pipe.
address that is not allowed | 401
    {"error":{"message":"Your IP is not
    authorized.","type":"invalid_request_error","param":null,"code":"ip_not_authorized"}}
    => OpenAI accepts requests for this account only from listed IP addresses, and this
    server's address is not among them. An administrator has to add it to the list at
    OpenAI. If the problem persists, an administrator has to check PROXY in the valves
    of this pipe.
LiteLLM's key without the model | 401 | not for this key
    {"error":{"message":"key not allowed to access model. This key can only access
    models=['gpt-5']. Tried to access
    gpt-6","type":"key_model_access_denied","param":"model","code":"401"}}
used up quota | 401 | no credit
    {"error":{"code":"insufficient_quota","message":"No."}}
# 402
LiteLLM's budget | 400 | no credit
    {"error":{"message":"Budget has been exceeded! Current cost: 14.2, Max budget:
    10.0","type":"budget_exceeded","param":null,"code":"400"}}
# 403
country | 403 | country
    {"error":{"code":"unsupported_country_region_territory","message":"Country, region,
    or territory not supported","param":null,"type":"request_forbidden"}}
country, told by LiteLLM | 403 | country
    {"error":{"message":"litellm.PermissionDeniedError: OpenAIException - Country,
    region, or territory not supported","type":null,"param":null,"code":"403"}}
OpenRouter's moderation | 403 | filtered
    {"error":{"message":"openai/gpt-5 requires moderation on OpenAI. Your input was
    flagged for
    \"violence\".","code":403,"metadata":{"reasons":["violence"],"flagged_input":"my
    secret diary","provider_name":"OpenAI","model_slug":"openai/gpt-5"}}}
xAI's moderation | 403 | filtered
    {"code":"The caller does not have permission to execute the specified
    operation","error":"Content violates usage guidelines. Team: t, API key ID: k,
    Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO"}
Cloudflare's page | 403 | firewall
    <cloudflare>
Cloudflare's text | 403 | firewall
    <code 1020>
missing scope with another status | 403 | missing scope
    {"error":{"message":"You have insufficient permissions for this operation. Missing
    scopes:
    api.responses.write.","type":"invalid_request_error","param":null,"code":null}}
project without the model | 403 | not there
    {"error":{"message":"Project `proj_1` does not have access to model
    `gpt-5`","type":"invalid_request_error","param":null,"code":"model_not_found"}}
LiteLLM's team without the model | 403 | not for this key
    {"error":{"message":"team not allowed to access
    model.","type":"team_model_access_denied","param":"model","code":"403"}}
unverified organization | 403 | unverified
    {"error":{"message":"Your organization must be verified to use the model `gpt-5`.
    Please go to: https://platform.openai.com/settings/organization/general and click on
    Verify
    Organization.","type":"invalid_request_error","param":null,"code":"model_not_found"}}
unverified organization, told by LiteLLM | 404 | unverified
    {"error":{"message":"litellm.NotFoundError: OpenAIException - Your organization must
    be verified to use the model `gpt-5`.","type":null,"param":null,"code":"404"}}
words about a model are not enough | 403
    {"error":{"message":"You may not use the model today.","type":"permission_error"}}
    => The model's server does not allow this request: HTTP 403. An administrator can
    find the reason in the log.
unknown 403 with a code | 403
    {"error":{"message":"No.","type":"request_forbidden","code":"request_forbidden"}}
    => The model's server does not allow this request: HTTP 403 (request_forbidden). An
    administrator can find the reason in the log.
403 without a body | 403
    => The model's server does not allow this request: HTTP 403. An administrator can
    find the reason in the log.
# words of other servers
Azure's role of Entra ID | 401 | missing scope
    {"error":{"code":"PermissionDenied","message":"The principal `p` lacks the required
    data action `Microsoft.CognitiveServices/accounts/OpenAI/responses/write` to perform
    `POST /openai/responses` operation."}}
Azure's network rules | 403 | firewall
    {"error":{"code":"403","message":"Access denied due to Virtual Network/Firewall
    rules."}}
Azure's version of the API | 400 | address
    {"error":{"code":"BadRequest","message":"Azure OpenAI Responses API is enabled only
    for api-version 2025-03-01-preview and later"}}
Azure's model without this API | 400 | not there
    {"error":{"code":"OperationNotSupported","message":"The responses operation does not
    work with the specified model, gpt-35-turbo."}}
Bedrock's model for others | 403 | not for this key
    {"message":"You don't have access to the model with the specified model ID."}
Google's wrong key | 400 | wrong key
    [{"error":{"code":400,"message":"API key not valid. Please pass a valid API
    key.","status":"INVALID_ARGUMENT"}}]
Snowflake's unknown model | 400 | not there
    {"message":"unknown model \"x\"","request_id":"a"}
Cloudflare's unknown model | 400 | not there
    {"errors":[{"message":"AiError: No such model @cf/x or
    task","code":5007}],"success":false,"result":{},"messages":[]}
Codex's model | 400 | not there
    {"detail":"The 'gpt-4.1' model is not supported when using Codex with a ChatGPT
    account."}
Codex's used up hours | 429
    {"error":{"type":"usage_limit_reached","message":"The usage limit has been
    reached","plan_type":"plus","resets_in_seconds":12000}}
    => The OpenAI account has reached the usage limit of its plan. Try again in 4 hours.
Fireworks' unpaid account | 412 | no credit
    {"error":{"object":"error","type":"invalid_request_error","message":"Account x is
    suspended, possibly due to reaching the monthly spending limit or failure to pay
    past invoices."}}
Cloudflare's free neurons | 429 | no credit
    {"errors":[{"message":"you have used up your daily free allocation of 10,000
    neurons","code":4006}],"success":false}
safeguard that a gateway does not know | 422
    {"detail":[{"type":"extra_forbidden","loc":["body","safety_identifier"],"msg":"Extra
    inputs are not permitted","input":"u"}]}
    => The model's server rejected the request at safety_identifier. That is a
    safeguard, without which nothing is sent. An administrator has to check COMPATIBILITY
    in the valves of this pipe.
Portkey's guardrail | 446 | filtered
    {"error":{"message":"The guardrail checks defined in the config
    failed.","type":"hooks_failed","param":null,"code":null},"hook_results":{}}
Mistral's list in its message | 422
    {"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body",\
    "top_k"],"msg":"Extra
    inputs are not
    permitted"}]},"type":"invalid_request_error","param":null,"code":null}
    => The model's server rejected the request with HTTP 422 at top_k. An administrator
    can find the details in the log.
# 404
unknown path | 404 | address
    {"error":{"message":"Invalid URL (POST
    /v1/respond)","type":"invalid_request_error","param":null,"code":null}}
unknown path, as a page | 404 | address
    <nginx 404 Not Found>
unknown response | 404
    {"error":{"message":"Response with id 'resp_06fb73df6146c21b' not
    found.","type":"invalid_request_error","param":null,"code":null}}
    => The model's server rejected the request with HTTP 404. An administrator can find
    the details in the log.
path of another server | 405 | address
    {"detail":"Method Not Allowed"}
# other statuses
request that took too long | 408
    {"error":{"message":"Your request timed out","code":408}}
    => The model's server gave up, because the request took too long (HTTP 408). Try
    again; if that does not help, leave out large files.
conflict | 409
    => This request conflicts with something else that the model's server is doing (HTTP
    409). Try again in a moment.
large body | 413
    <nginx 413 Request Entity Too Large>
    => This chat is too large for the model's server. Start a new chat, or leave out
    large files and images.
misdirected | 421
    <nginx 421 Misdirected Request>
    => The request reached a server that does not serve the address of the model's
    server (HTTP 421). An administrator has to check BASE_URL and PROXY in the valves of
    this pipe.
law | 451
    => The model's server may not answer this request for legal reasons (HTTP 451).
    Rephrase the question, or choose another model.
firewall's page with another status | 400 | firewall
    <nginx 400 Bad Request>
firewall's limit | 429 | firewall
    <nginx 429 Too Many Requests>
gateway without its server | 502 | gateway
    <nginx 502 Bad Gateway>
gateway of a server that is down | 503 | gateway
    <nginx 503 Service Temporarily Unavailable>
overloaded | 529 | overloaded
    {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
# files and images
image at its place | 400 | image
    {"error":{"message":"Invalid
    value.","type":"invalid_request_error","param":"input[9].content[1].image_url",\
    "code":"invalid_value"}}
file at its place | 400 | file
    {"error":{"message":"Invalid file
    data.","type":"invalid_request_error","param":"input[9].output[0].file_data",\
    "code":"invalid_value"}}
unknown field of an image | 400
    {"error":{"message":"Unknown parameter:
    'input[9].content[1].image_url.x'.","type":"invalid_request_error",\
    "param":"input[9].content[1].image_url.x","code":"unknown_parameter"}}
    => The model's server rejected the request with HTTP 400 (unknown_parameter) at
    input[9].content[1].image_url.x. An administrator can find the details in the log.
text at its place | 400
    {"error":{"message":"No.","type":"invalid_request_error",\
    "param":"input[9].content[1].text","code":"invalid_value"}}
    => The model's server rejected the request with HTTP 400 (invalid_value) at
    input[9].content[1].text. An administrator can find the details in the log.
file of another kind | 400 | file
    {"error":{"message":"Invalid input: Expected context stuffing file type to be a
    supported format: .pdf but got
    .csv.","type":"invalid_request_error","param":"input","code":"unsupported_file"}}
# other servers
OpenRouter's exact reason | 400 | too long
    {"error":{"code":"invalid_prompt",\
    "message":"No."},"error_type":"context_length_exceeded","metadata":null}
OpenRouter's check of a request is no policy | 400
    {"error":{"code":"invalid_prompt","message":"Invalid Responses API
    request"},"metadata":null}
    => The model's server rejected the request with HTTP 400 (invalid_request). An
    administrator can find the details in the log.
Copilot with the reasoning of another account | 401
    {"error":{"message":"input item ID does not belong to this connection","code":""}}
    => OpenAI could not read the reasoning of an earlier answer in this chat. Start a
    new chat.
LiteLLM's guardrail | 400 | filtered
    {"error":{"message":{"error":"Violated guardrail
    policy","aporia_ai_response":{"action":"block"}},"type":"None","param":"None",\
    "code":"400"}}
LiteLLM's moderation | 400 | filtered
    {"error":{"message":{"error":"Violated OpenAI moderation
    policy","moderation_result":{}},"type":"None","param":"None","code":"400"}}
new-api's channel without this API | 500 | not there
    {"error":{"message":"not implemented (request id:
    20261128)","type":"new_api_error","param":"","code":"convert_request_failed"}}
another code is exact enough | 400 | too long
    {"error":{"code":"context_length_exceeded","message":"No."},"error_type":"server"}
FastAPI's detail | 401
    {"detail":{"code":"account_deactivated","message":"No."}}
    => OpenAI has deactivated the account of the API key. An administrator has to check
    API_KEY in the valves of this pipe.
DashScope's inspection | 400 | filtered
    {"error":{"code":"data_inspection_failed","param":null,"message":"Input data may
    contain inappropriate content.","type":"data_inspection_failed"}}
Ark's inspection | 400 | filtered
    {"error":{"code":"InputTextSensitiveContentDetected","message":"The request failed
    because the input text may contain sensitive
    information.","param":"","type":"BadRequest"}}
DeepSeek's inspection | 400 | filtered
    {"error":{"message":"Content Exists
    Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}
DashScope without credit | 400 | no credit
    {"error":{"code":"Arrearage","param":null,"message":"Access denied, please make sure
    your account is in good standing.","type":"Arrearage"}}
Ark without credit | 403 | no credit
    {"error":{"code":"AccountOverdueError","message":"The request failed because your
    account has an overdue balance.","param":"","type":"Forbidden"}}
Azure's older version | 400 | address
    {"error":{"code":"BadRequest","message":"API version not supported"}}
SiliconFlow without credit | 403 | no credit
    {"code":30001,"message":"Sorry, your account balance is insufficient","data":null}
Zhipu without credit | 429 | no credit
    {"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}
Zhipu's limit of a plan | 429 | plan
    {"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will
    reset at 2026-10-11 01:20:24"}}
Zhipu's inspection | 400 | filtered
    {"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"},\
    "contentFilter":[{"level":1,"role":"user"}]}
DashScope's free quota | 403 | no credit
    {"error":{"message":"The free tier of the model has been
    exhausted.","type":"AllocationQuota.FreeTierOnly",\
    "code":"AllocationQuota.FreeTierOnly"}}
Ark's own limit | 429 | no credit
    {"error":{"code":"SetLimitExceeded","message":"Your account 21 has reached the set
    inference limit for the x model, and the model service has been
    paused.","param":"","type":"TooManyRequests"}}
Ark's context | 400 | too long
    {"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed
    max message tokens. Request id: 02","param":"messages","type":"BadRequest"}}
Cohere's context | 400 | too long
    {"message":"too many tokens: size limit exceeded by 1000 tokens."}
Moonshot overloaded | 429 | overloaded
    {"error":{"message":"The engine is currently overloaded, please try again
    later","type":"engine_overloaded_error"}}
Google's country | 400 | country
    [{"error":{"code":400,"message":"User location is not supported for the API
    use.","status":"FAILED_PRECONDITION"}}]
Groq's JSON that its model wrote badly | 400
    {"error":{"message":"Failed to generate JSON. Please adjust your
    prompt.","type":"invalid_request_error","code":"json_validate_failed",\
    "failed_generation":"{"}}
    => The model wrote something that its server could not read. Try again.
DashScope without the model | 400 | not there
    {"error":{"message":"model `qwen3-max` is not supported."}}
OpenRouter without the model | 400 | not there
    {"error":{"message":"x/y is not a valid model ID","code":400}}
a tool that a model does not take is no missing model | 400
    {"error":{"message":"The model `x` is not supported with this tool."}}
    => The model's server rejected the request with HTTP 400. An administrator can find
    the details in the log.
name of the status next to the words | 400 | not there
    {"statusCode":400,"error":"Bad Request","message":"unknown model x"}
llama.cpp with a picture that it cannot read | 400 | image
    {"error":{"code":400,"message":"Failed to load image or audio
    file","type":"invalid_request_error"}}
OpenAI's file of another kind in words | 400 | file
    {"error":{"message":"The file type you uploaded is not supported. Please try again
    with a pdf","type":"invalid_request_error","param":null,"code":null}}
Codex's own server without limits | 400
    {"detail":"Unsupported parameter: max_output_tokens"}
    => The model's server rejected the request with HTTP 400 at max_output_tokens. An
    administrator can find the details in the log.
Azure's limit of a day | 429
    {"error":{"code":"429","message":"Requests have exceeded token rate limit of your
    current AIServices S0 pricing tier. Please retry after 86400 seconds."}}
    => This API key has reached OpenAI's rate limit. Wait 24 hours, then try again.
DIAL's limit of a week | 429
    {"error":{"message":"Error code: 429 - {'error': {'message': 'Hit token rate limit.',
    'code': '429'}}","type":"rate_limit_exceeded","code":"500","display_message":"You've
    exceeded your weekly token limit. Please try again in 7 days"}}
    => This API key has reached OpenAI's rate limit. Wait 7 days, then try again.
llama.cpp with a call that it cannot read | 500 | unreadable model
    {"error":{"code":500,"message":"Failed to parse input at pos 395:
    <|tool_call_start|>[web_search_exa(query='x')]<|tool_call_end|>",\
    "type":"server_error"}}
vLLM with a call of gpt-oss that it cannot read | 500 | unreadable model
    {"error":{"message":"unexpected tokens remaining in message header:
    Some(\"to=functions.x\")","type":"Internal Server Error","param":null,"code":500}}
OpenRouter's provider is busy with everybody | 429 | overloaded
    {"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"z-ai/glm
    is temporarily rate-limited upstream. Please retry shortly, or add your own key to
    accumulate your rate limits","provider_name":"BaseTen"}}}
Azure's busy region | 429 | overloaded
    {"error":{"code":"429","message":"The system is currently experiencing high demand
    and cannot process your request."}}
Workers AI without capacity | 429 | overloaded
    {"errors":[{"message":"AiError: Capacity temporarily exceeded, please try
    again.","code":3040}],"success":false,"result":{}}
new-api's busy group | 429 | overloaded
    {"error":{"message":"当前分组上游负载已饱和，请稍后再试","type":"upstream_error",\
    "param":"","code":429}}
API Management's quota of a product | 403 | plan
    {"statusCode":403,"message":"Quota exceeded. Quota will be replenished in
    12:30:11."}
Anthropic's unreadable image behind a gateway | 400 | image
    {"type":"error","error":{"type":"invalid_request_error","message":"Could not process
    image"},"request_id":"req_1"}
Ollama without memory | 500
    {"error":{"message":"model requires more system memory (14.3 GiB) than is available
    (7.6 GiB)","type":"api_error","param":null,"code":null}}
    => The model's server does not have enough memory for this model. Choose a smaller
    model.
key of a region | 401
    {"error":{"message":"Attempted to access resource with incorrect regional hostname.
    Please make your request to us.api.openai.com","type":"invalid_request_error",\
    "code":"incorrect_hostname","param":null},"status":401}
    => The API key is bound to a region, which has an address of its own at OpenAI. An
    administrator has to check BASE_URL in the valves of this pipe.
more tools than the API takes | 400 | tools
    {"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum
    length 128, but got an array with length 158
    instead.","type":"invalid_request_error","param":"tools",\
    "code":"array_above_max_length"}}
more tools than Groq takes | 400 | tools
    {"error":{"message":"'tools' : maximum number of items is
    128","type":"invalid_request_error"}}
Bedrock's key of twelve hours | 403 | wrong key
    {"Message":"Bearer Token has expired"}
AWS's expired token | 403 | wrong key
    {"message":"The security token included in the request is expired"}
Bedrock's limit of a day | 429
    {"message":"Too many tokens per day, please wait before trying again."}
    => This API key has reached OpenAI's rate limit. Wait some hours, then try again.
OpenRouter's account that forbids all providers | 404
    {"error":{"message":"No endpoints found matching your data policy (Free model
    publication). Configure: https://openrouter.ai/settings/privacy","code":404}}
    => The privacy settings of the account at OpenAI allow no provider of this model. An
    administrator has to change them, or choose another model.
LM Studio's crash | 400 | broken inside
    {"error":{"message":"The model has crashed without additional information. (Exit
    code: 18446744072635812000)"}}
Z.AI's context behind cc-switch | 502 | too long
    CC Switch local proxy failed while handling Codex endpoint /responses. Provider:
    Zhipu GLM; upstream_status: HTTP 400; cause: Prompt exceeds max length
OpenRouter's privacy settings behind cc-switch | 404
    {"error":{"message":"CC Switch local proxy failed while handling Codex endpoint
    /responses. Provider: x; model: x; upstream_status: HTTP 404; cause: No endpoints
    found matching your data policy","type":"proxy_error",
    "code":"cc_switch_upstream_error"}}
    => The privacy settings of the account at OpenAI allow no provider of this model. An
    administrator has to change them, or choose another model.
Google's key that has leaked | 403 | wrong key
    [{"error":{"code":403,"message":"Your API key was reported as leaked. Please use another
    API key.","status":"PERMISSION_DENIED"}}]
MiniMax's large image | 400 | image
    {"error":{"message":"media exceeds size limit: max 10485760 bytes
    (2013)","code":"invalid_prompt"}}
Cloudflare, of a server that took too long | 524
    <nginx example.com | 524: A timeout occurred>
    => A gateway in front of the model's server got no answer in time (HTTP 524). Try
    again, or choose a lower effort.
gateway of AWS, of a server that took too long | 504
    {"message":"Endpoint request timed out"}
    => A gateway in front of the model's server got no answer in time (HTTP 504). Try
    again, or choose a lower effort.
Databricks' provider without the API | 400 | not there
    {"error_code":"INVALID_PARAMETER_VALUE","message":"Native_api_type=openai/v1/responses
    is not supported for provider Amazon Bedrock."}
llama.cpp's template (Haervwe/open-webui-tools 93) | 500
    {"error":{"code":500,"message":"\n------------\nWhile executing CallExpression at
    line 79, column 24 in source:\n...\nError: Jinja Exception: No user query found in
    messages.","type":"server_error"}}
    => The model's server rejected the request. Sending it again does not help; an
    administrator can find the details in the log.
Cloudflare's gateway without an answer | 400 | broken inside
    {"success":false,"result":[],"messages":[],"error":[{"code":2005,"message":"Failed to
    get response from provider"}]}
"""
_PAGES = {
    "nginx": NGINX_PAGE,
    "cloudflare": CLOUDFLARE_PAGE,
    "code": "error code: {}\n",
}
"""By what the table calls them in angle brackets."""


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line that is not indented with the words of those below it."""
    for head, lines in re.findall(r"^(\w.*)\n((?:    .*\n)*)", text, re.MULTILINE):
        yield head, " ".join(lines.split()).replace("\\ ", "")


_SAID = dict(_blocks(_MESSAGES))
NOT_FOR_THIS_KEY = _SAID["not for this key"]
NOT_THERE = _SAID["not there"]
UNVERIFIED = _SAID["unverified"]


class _Row(NamedTuple):
    """A row of a table: what is in its head, and the two texts below it."""

    name: str
    fields: list[str]
    body: str
    message: str


def _rows(table: str) -> Iterator[_Row]:
    for head, text in _blocks(table):
        name, *fields = head.split(" | ")
        body, _, own = text.partition("=> ")
        yield _Row(name, fields, body.strip(), own or _SAID[fields[-1]])


def _sent(body: str) -> str:
    """Return a body as it is sent: a page has only its name and its title here."""
    if not body.startswith("<"):
        return body
    name, _, title = body[1:-1].partition(" ")
    return _PAGES[name].format(title)


REFUSED_BODIES = {
    name: RefusedBody(int(status), _sent(body), message.format(status))
    for name, (status, *_), body, message in _rows(_TABLE)
}
"""By what they are."""

_EVENTS = r"""
# As above, without a status: they come in a stream, or with the status 200.
recorded
    {"type":"invalid_request_error","code":null,"param":null,"message":"Conversation with
    id 'conv_1' not found."}
    => The model's server rejected the request (invalid_request_error). Sending it again
    does not help; an administrator can find the details in the log.
with a place
    {"type":"invalid_request_error","code":"integer_above_max_value",\
    "param":"max_output_tokens","message":"No."}
    => The model's server rejected the request (integer_above_max_value) at
    max_output_tokens. Sending it again does not help; an administrator can find the
    details in the log.
without a type
    {"code":"unsupported_parameter","param":"temperature","message":"No."}
    => The model's server rejected the request (unsupported_parameter) at temperature.
    Sending it again does not help; an administrator can find the details in the log.
an image
    {"type":"invalid_request_error","code":"invalid_value",\
    "param":"input[9].content[1].image_url","message":"No."}
    => The model's server could not use an image in this chat (invalid_value). Remove it,
    or attach it again as PNG, JPEG, WEBP or GIF of a moderate size.
model access | overloaded
    {"type":"service_unavailable_error","code":null,"message":"Unable to verify model
    access right now. Please retry."}
429 | busy
    {"code":429,"message":"No."}
502
    {"code":502,"message":"No."}
    => OpenAI reported an internal error (HTTP 502). Try again in a moment.
403
    {"code":403,"message":"No."}
    => The model's server does not allow this request: HTTP 403. An administrator can
    find the reason in the log.
wrong key | wrong key
    {"code":"invalid_api_key","message":"No."}
unknown model | not there
    {"code":"model_not_found","message":"No."}
our own word
    {"code":"firewall_page","message":"No."}
    => A firewall or proxy in front of the model's server did not let this request through
    (HTTP 200). The API key is not the cause. If the problem persists, an administrator
    has to check BASE_URL and PROXY in the valves of this pipe.
a word for many statuses
    {"code":"5","message":"No."}
    => The model's server reported an error (5). Try again. An administrator can find the
    details in the log.
unknown
    {"type":"odd_error","message":"No."}
    => The model's server reported an error (odd_error). Try again. An administrator can
    find the details in the log.
user whose access is limited
    {"type":"invalid_request","code":"cyber_policy_violation","message":"This user's
    access to gpt-5.3-codex has been temporarily limited.","param":"safety_identifier"}
    => OpenAI declined to answer, because the answer could help attack computers
    (cyber_policy). Rephrase the question, or start a new chat. For security work, an
    administrator can apply to OpenAI for access.
DashScope's refusal
    {"code":"InvalidParameter","message":"<400> InternalError.Algo: No."}
    => The model's server rejected the request. Sending it again does not help; an
    administrator can find the details in the log.
"""
FAILED_EVENTS = {
    name: (json.loads(body), message) for name, _, body, message in _rows(_EVENTS)
}
"""Errors that come in a stream, and the messages about them."""
