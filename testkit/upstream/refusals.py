"""What servers answered to requests that they refused, and what people are told of it.

The bodies were published with bug reports; ids and keys in them are replaced.
"""

from typing import NamedTuple


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
WRONG_KEY = (
    "OpenAI does not accept the API key. An administrator has to check API_KEY in the "
    "valves of this pipe."
)
NO_CREDIT = (
    "The OpenAI account has no credit left, or has reached its spending limit. An "
    "administrator has to check its billing."
)
MISSING_SCOPE = (
    "The API key is valid, but has no permission for this request: a scope, or a role in "
    "its project, is missing. An administrator has to check API_KEY in the valves of "
    "this pipe."
)
WRONG_ORGANIZATION = (
    "The API key does not belong to the organization in the settings. An administrator "
    "has to check ORGANIZATION and API_KEY in the valves of this pipe."
)
COUNTRY = (
    "OpenAI does not answer requests from the country or region where this server is. "
    "The API key is not the cause. An administrator has to check PROXY in the valves of "
    "this pipe."
)
FILTERED = (
    "OpenAI's content filter rejected this chat, so it was not answered. Rephrase the "
    "question, or start a new chat."
)
NOT_FOR_THIS_KEY = (
    "This API key may not use this model. Choose another model, or ask an administrator "
    "to change the rights of the key."
)
NOT_THERE = (
    "The model this model does not exist, has been shut down, or is not available to "
    "this API key. Choose another model."
)
UNVERIFIED = (
    "OpenAI does this only for verified organizations. An administrator has to verify "
    "the organization in its settings at OpenAI, or choose another model."
)
FIREWALL = (
    "A firewall or proxy in front of the model's server did not let this request through "
    "(HTTP {}). The API key is not the cause. If the problem persists, an administrator "
    "has to check BASE_URL and PROXY in the valves of this pipe."
)
GATEWAY = (
    "A gateway in front of the model's server answered in its place (HTTP {}), so the "
    "server may be down. Try again in a moment. If the problem persists, an "
    "administrator has to check BASE_URL in the valves of this pipe."
)
BUSY = "This API key has reached OpenAI's rate limit. Wait a minute, then try again."
OVERLOADED = "OpenAI is overloaded. Try again in a moment."
BROKEN_INSIDE = "OpenAI reported an internal error. Try again in a moment."
ADDRESS = (
    "There is no Responses API at the address of the model's server. An administrator "
    "has to check BASE_URL in the valves of this pipe."
)
IMAGE = (
    "The model's server could not use an image in this chat. Remove it, or attach it "
    "again as PNG, JPEG, WEBP or GIF of a moderate size."
)
FILE = (
    "The model's server could not use a file in this chat. Remove it, or attach it again "
    "as a PDF or as text."
)
TOO_LONG = (
    "This chat is longer than the model can read. Start a new chat, or choose a model "
    "with a larger context."
)

REFUSED_BODIES = {
    # ------------------------------------------------------------------ 401
    "wrong key": RefusedBody(
        401,
        '{"error":{"message":"Incorrect API key provided: sk-x***4711. You can find '
        'your API key at https://platform.openai.com/account/api-keys.","type":'
        '"invalid_request_error","param":null,"code":"invalid_api_key"}}',
        WRONG_KEY,
    ),
    "unreadable token": RefusedBody(
        401,
        '{"error":{"message":"Could not parse your authentication token. Please try '
        'signing in again.","type":null,"code":null,"param":null}}',
        WRONG_KEY,
    ),
    "no error at all": RefusedBody(401, "", WRONG_KEY),
    "login page": RefusedBody(
        401, NGINX_PAGE.format("401 Authorization Required"), WRONG_KEY
    ),
    "a server's type says nothing about a key": RefusedBody(
        401, '{"error":{"message":"No.","type":"server_error","code":null}}', WRONG_KEY
    ),
    "words about a model say nothing about a key": RefusedBody(
        401, '{"detail":"token not found; this model does not exist"}', WRONG_KEY
    ),
    "missing scope": RefusedBody(
        401,
        '{"error":{"message":"You have insufficient permissions for this operation. '
        "Missing scopes: api.responses.write. Check that you have the correct role in "
        "your organization (Reader, Writer, Owner) and project (Member, Owner), and if "
        "you're using a restricted API key, that it has the necessary scopes.\","
        '"type":"invalid_request_error","param":null,"code":"missing_scope"}}',
        MISSING_SCOPE,
    ),
    "missing scope, by its words": RefusedBody(
        401,
        '{"error":{"message":"You have insufficient permissions for this operation. '
        'Missing scopes: model.request.","type":"server_error","param":null,'
        '"code":null}}',
        MISSING_SCOPE,
    ),
    "missing scope, told by LiteLLM": RefusedBody(
        401,
        '{"error":{"message":"litellm.AuthenticationError: AuthenticationError: '
        "OpenAIException - Missing scopes: api.responses.write. Received Model Group="
        'gpt-5","type":null,"param":null,"code":"401"}}',
        MISSING_SCOPE,
    ),
    "mismatched organization": RefusedBody(
        401,
        '{"error":{"message":"OpenAI-Organization header should match organization for '
        'API key","type":"invalid_request_error","param":null,"code":'
        '"mismatched_organization"}}',
        WRONG_ORGANIZATION,
    ),
    "no such organization": RefusedBody(
        401,
        '{"error":{"message":"No such organization: nedge.","type":'
        '"invalid_request_error","param":null,"code":"invalid_organization"}}',
        WRONG_ORGANIZATION,
    ),
    "mismatched project": RefusedBody(
        401,
        '{"error":{"message":"OpenAI-Project header should match project for API key",'
        '"type":"invalid_request_error","param":null,"code":"mismatched_project"}}',
        "The API key does not belong to the project in the settings. An administrator "
        "has to check PROJECT and API_KEY in the valves of this pipe.",
    ),
    "address that is not allowed": RefusedBody(
        401,
        '{"error":{"message":"Your IP is not authorized.","type":'
        '"invalid_request_error","param":null,"code":"ip_not_authorized"}}',
        "OpenAI accepts requests for this account only from listed IP addresses, and "
        "this server's address is not among them. An administrator has to add it to the "
        "list at OpenAI. If the problem persists, an administrator has to check PROXY "
        "in the valves of this pipe.",
    ),
    "deactivated account": RefusedBody(
        401,
        '{"error":{"message":"The OpenAI account associated with this API key has been '
        "deactivated. If you are the developer for this OpenAI app, please check your "
        'email for more information.","type":"invalid_request_error","param":null,'
        '"code":"account_deactivated"}}',
        "OpenAI has deactivated the account of the API key. An administrator has to "
        "check API_KEY in the valves of this pipe.",
    ),
    "LiteLLM's key without the model": RefusedBody(
        401,
        '{"error":{"message":"key not allowed to access model. This key can only access '
        'models=[\'gpt-5\']. Tried to access gpt-6","type":"key_model_access_denied",'
        '"param":"model","code":"401"}}',
        NOT_FOR_THIS_KEY,
    ),
    "used up quota": RefusedBody(
        401, '{"error":{"code":"insufficient_quota","message":"No."}}', NO_CREDIT
    ),
    # ------------------------------------------------------------------ 402
    "OpenRouter without credit": RefusedBody(
        402,
        '{"error":{"message":"Insufficient credits. Add more using '
        'https://openrouter.ai/settings/credits","code":402}}',
        NO_CREDIT,
    ),
    "LiteLLM's budget": RefusedBody(
        400,
        '{"error":{"message":"Budget has been exceeded! Current cost: 14.2, Max budget: '
        '10.0","type":"budget_exceeded","param":null,"code":"400"}}',
        NO_CREDIT,
    ),
    "inactive billing": RefusedBody(
        429,
        '{"error":{"message":"Your account is not active, please check your billing '
        'details on our website.","type":"billing_not_active","param":null,"code":'
        '"billing_not_active"}}',
        NO_CREDIT,
    ),
    # ------------------------------------------------------------------ 403
    "country": RefusedBody(
        403,
        '{"error":{"code":"unsupported_country_region_territory","message":"Country, '
        'region, or territory not supported","param":null,"type":"request_forbidden"}}',
        COUNTRY,
    ),
    "country, without a wrapper": RefusedBody(
        403,
        '{"code":"unsupported_country_region_territory","message":"Country, region, or '
        'territory not supported","param":null,"type":"request_forbidden"}',
        COUNTRY,
    ),
    "country, told by LiteLLM": RefusedBody(
        403,
        '{"error":{"message":"litellm.PermissionDeniedError: OpenAIException - Country, '
        'region, or territory not supported","type":null,"param":null,"code":"403"}}',
        COUNTRY,
    ),
    "OpenRouter's moderation": RefusedBody(
        403,
        '{"error":{"message":"openai/gpt-5 requires moderation on OpenAI. Your input '
        'was flagged for \\"violence\\".","code":403,"metadata":{"reasons":["violence"],'
        '"flagged_input":"my secret diary","provider_name":"OpenAI","model_slug":'
        '"openai/gpt-5"}}}',
        FILTERED,
    ),
    "xAI's moderation": RefusedBody(
        403,
        '{"code":"The caller does not have permission to execute the specified '
        'operation","error":"Content violates usage guidelines. Team: t, API key ID: k, '
        'Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO"}',
        FILTERED,
    ),
    "Cloudflare's page": RefusedBody(403, CLOUDFLARE_PAGE, FIREWALL.format(403)),
    "Cloudflare's text": RefusedBody(403, "error code: 1020\n", FIREWALL.format(403)),
    "missing scope with another status": RefusedBody(
        403,
        '{"error":{"message":"You have insufficient permissions for this operation. '
        'Missing scopes: api.responses.write.","type":"invalid_request_error","param":'
        'null,"code":null}}',
        MISSING_SCOPE,
    ),
    "project without the model": RefusedBody(
        403,
        '{"error":{"message":"Project `proj_1` does not have access to model `gpt-5`",'
        '"type":"invalid_request_error","param":null,"code":"model_not_found"}}',
        NOT_THERE,
    ),
    "LiteLLM's team without the model": RefusedBody(
        403,
        '{"error":{"message":"team not allowed to access model.","type":'
        '"team_model_access_denied","param":"model","code":"403"}}',
        NOT_FOR_THIS_KEY,
    ),
    "unverified organization": RefusedBody(
        403,
        '{"error":{"message":"Your organization must be verified to use the model '
        "`gpt-5`. Please go to: https://platform.openai.com/settings/organization/"
        'general and click on Verify Organization.","type":"invalid_request_error",'
        '"param":null,"code":"model_not_found"}}',
        UNVERIFIED,
    ),
    "unverified organization, told by LiteLLM": RefusedBody(
        404,
        '{"error":{"message":"litellm.NotFoundError: OpenAIException - Your '
        'organization must be verified to use the model `gpt-5`.","type":null,"param":'
        'null,"code":"404"}}',
        UNVERIFIED,
    ),
    "words about a model are not enough": RefusedBody(
        403,
        '{"error":{"message":"You may not use the model today.","type":'
        '"permission_error"}}',
        "The model's server does not allow this request: HTTP 403. An administrator "
        "can find the reason in the log.",
    ),
    "unknown 403 with a code": RefusedBody(
        403,
        '{"error":{"message":"No.","type":"request_forbidden","code":'
        '"request_forbidden"}}',
        "The model's server does not allow this request: HTTP 403 (request_forbidden). "
        "An administrator can find the reason in the log.",
    ),
    "403 without a body": RefusedBody(
        403,
        "",
        "The model's server does not allow this request: HTTP 403. An administrator "
        "can find the reason in the log.",
    ),
    # ------------------------------------------------------- words of other servers
    "Azure's role of Entra ID": RefusedBody(
        401,
        '{"error":{"code":"PermissionDenied","message":"The principal `p` lacks the '
        "required data action `Microsoft.CognitiveServices/accounts/OpenAI/responses/"
        'write` to perform `POST /openai/responses` operation."}}',
        MISSING_SCOPE,
    ),
    "Azure's network rules": RefusedBody(
        403,
        '{"error":{"code":"403","message":"Access denied due to Virtual '
        'Network/Firewall rules."}}',
        FIREWALL.format(403),
    ),
    "Azure's version of the API": RefusedBody(
        400,
        '{"error":{"code":"BadRequest","message":"Azure OpenAI Responses API is enabled '
        'only for api-version 2025-03-01-preview and later"}}',
        ADDRESS,
    ),
    "Azure's model without this API": RefusedBody(
        400,
        '{"error":{"code":"OperationNotSupported","message":"The responses operation '
        'does not work with the specified model, gpt-35-turbo."}}',
        NOT_THERE,
    ),
    "Bedrock's model for others": RefusedBody(
        403,
        '{"message":"You don\'t have access to the model with the specified model ID."}',
        NOT_FOR_THIS_KEY,
    ),
    "Google's wrong key": RefusedBody(
        400,
        '[{"error":{"code":400,"message":"API key not valid. Please pass a valid API '
        'key.","status":"INVALID_ARGUMENT"}}]',
        WRONG_KEY,
    ),
    "Groq's old model": RefusedBody(
        400,
        '{"error":{"message":"The model `x` has been decommissioned.","type":'
        '"invalid_request_error","code":"model_decommissioned"}}',
        NOT_THERE,
    ),
    "Snowflake's unknown model": RefusedBody(
        400, '{"message":"unknown model \\"x\\"","request_id":"a"}', NOT_THERE
    ),
    "Cloudflare's unknown model": RefusedBody(
        400,
        '{"errors":[{"message":"AiError: No such model @cf/x or task","code":5007}],'
        '"success":false,"result":{},"messages":[]}',
        NOT_THERE,
    ),
    "Codex's model": RefusedBody(
        400,
        '{"detail":"The \'gpt-4.1\' model is not supported when using Codex with a '
        'ChatGPT account."}',
        NOT_THERE,
    ),
    "Codex's used up hours": RefusedBody(
        429,
        '{"error":{"type":"usage_limit_reached","message":"The usage limit has been '
        'reached","plan_type":"plus","resets_in_seconds":12000}}',
        NO_CREDIT,
    ),
    "Fireworks' unpaid account": RefusedBody(
        412,
        '{"error":{"object":"error","type":"invalid_request_error","message":"Account x '
        "is suspended, possibly due to reaching the monthly spending limit or failure "
        'to pay past invoices."}}',
        NO_CREDIT,
    ),
    "Cloudflare's free neurons": RefusedBody(
        429,
        '{"errors":[{"message":"you have used up your daily free allocation of 10,000 '
        'neurons","code":4006}],"success":false}',
        NO_CREDIT,
    ),
    "API Management's quota": RefusedBody(
        403,
        '{"statusCode":403,"message":"Out of call volume quota. Quota will be '
        'replenished in 01:10:10."}',
        NO_CREDIT,
    ),
    "safeguard that a gateway does not know": RefusedBody(
        422,
        '{"detail":[{"type":"extra_forbidden","loc":["body","safety_identifier"],'
        '"msg":"Extra inputs are not permitted","input":"u"}]}',
        "The model's server rejected the request at safety_identifier, which is a "
        "safeguard that each request has. An administrator has to check COMPATIBILITY "
        "in the valves of this pipe.",
    ),
    "Portkey's guardrail": RefusedBody(
        446,
        '{"error":{"message":"The guardrail checks defined in the config failed.",'
        '"type":"hooks_failed","param":null,"code":null},"hook_results":{}}',
        FILTERED,
    ),
    "Groq's call that its model wrote badly": RefusedBody(
        400,
        '{"error":{"message":"Failed to call a function. Please adjust your prompt.",'
        '"type":"invalid_request_error","code":"tool_use_failed","failed_generation":'
        '"<function=x>"}}',
        "The model wrote something that its server could not read. Try again.",
    ),
    "Mistral's list in its message": RefusedBody(
        422,
        '{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":'
        '["body","top_k"],"msg":"Extra inputs are not permitted"}]},"type":'
        '"invalid_request_error","param":null,"code":null}',
        "The model's server rejected the request with HTTP 422 at top_k. An "
        "administrator can find the details in the log.",
    ),
    # ------------------------------------------------------------------ 404
    "unknown path": RefusedBody(
        404,
        '{"error":{"message":"Invalid URL (POST /v1/respond)","type":'
        '"invalid_request_error","param":null,"code":null}}',
        ADDRESS,
    ),
    "unknown path, as a page": RefusedBody(
        404, NGINX_PAGE.format("404 Not Found"), ADDRESS
    ),
    "unknown response": RefusedBody(
        404,
        '{"error":{"message":"Response with id \'resp_06fb73df6146c21b\' not '
        'found.","type":"invalid_request_error","param":null,"code":null}}',
        "The model's server rejected the request with HTTP 404. An administrator can "
        "find the details in the log.",
    ),
    "path of another server": RefusedBody(
        405, '{"detail":"Method Not Allowed"}', ADDRESS
    ),
    # --------------------------------------------------------------- other statuses
    "request that took too long": RefusedBody(
        408,
        '{"error":{"message":"Your request timed out","code":408}}',
        "The model's server gave up, because the request took too long (HTTP 408). Try "
        "again; if that does not help, leave out large files.",
    ),
    "conflict": RefusedBody(
        409,
        "",
        "This request conflicts with something else that the model's server is doing "
        "(HTTP 409). Try again in a moment.",
    ),
    "large body": RefusedBody(
        413,
        NGINX_PAGE.format("413 Request Entity Too Large"),
        "This chat is too large for the model's server. Start a new chat, or leave out "
        "large files and images.",
    ),
    "misdirected": RefusedBody(
        421,
        NGINX_PAGE.format("421 Misdirected Request"),
        "The address of the model's server leads to a server that does not serve it "
        "(HTTP 421). An administrator has to check BASE_URL and PROXY in the valves of "
        "this pipe.",
    ),
    "law": RefusedBody(
        451,
        "",
        "The model's server may not answer this request for legal reasons (HTTP 451). "
        "Rephrase the question, or choose another model.",
    ),
    "firewall's page with another status": RefusedBody(
        400, NGINX_PAGE.format("400 Bad Request"), FIREWALL.format(400)
    ),
    "firewall's limit": RefusedBody(
        429, NGINX_PAGE.format("429 Too Many Requests"), FIREWALL.format(429)
    ),
    "gateway without its server": RefusedBody(
        502, NGINX_PAGE.format("502 Bad Gateway"), GATEWAY.format(502)
    ),
    "gateway of a server that is down": RefusedBody(
        503,
        NGINX_PAGE.format("503 Service Temporarily Unavailable"),
        GATEWAY.format(503),
    ),
    "Cloudflare's own status, as a text": RefusedBody(
        521, "error code: 521", GATEWAY.format(521)
    ),
    "overloaded": RefusedBody(
        529,
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        OVERLOADED,
    ),
    # ------------------------------------------------------------- files and images
    "image at its place": RefusedBody(
        400,
        '{"error":{"message":"Invalid value.","type":"invalid_request_error","param":'
        '"input[9].content[1].image_url","code":"invalid_value"}}',
        IMAGE,
    ),
    "file at its place": RefusedBody(
        400,
        '{"error":{"message":"Invalid file data.","type":"invalid_request_error",'
        '"param":"input[9].output[0].file_data","code":"invalid_value"}}',
        FILE,
    ),
    "unknown field of an image": RefusedBody(
        400,
        '{"error":{"message":"Unknown parameter: \'input[9].content[1].image_url.'
        'x\'.","type":"invalid_request_error","param":'
        '"input[9].content[1].image_url.x","code":"unknown_parameter"}}',
        "The model's server rejected the request with HTTP 400 (unknown_parameter) at "
        "input[9].content[1].image_url.x. An administrator can find the details in the "
        "log.",
    ),
    "text at its place": RefusedBody(
        400,
        '{"error":{"message":"No.","type":"invalid_request_error","param":'
        '"input[9].content[1].text","code":"invalid_value"}}',
        "The model's server rejected the request with HTTP 400 (invalid_value) at "
        "input[9].content[1].text. An administrator can find the details in the log.",
    ),
    "file of another kind": RefusedBody(
        400,
        '{"error":{"message":"Invalid input: Expected context stuffing file type to be '
        'a supported format: .pdf but got .csv.","type":"invalid_request_error","param":'
        '"input","code":"unsupported_file"}}',
        FILE,
    ),
    # ---------------------------------------------------------------- other servers
    "OpenRouter's exact reason": RefusedBody(
        400,
        '{"error":{"code":"invalid_prompt","message":"No."},"error_type":'
        '"context_length_exceeded","metadata":null}',
        TOO_LONG,
    ),
    "OpenRouter's check of a request is no policy": RefusedBody(
        400,
        '{"error":{"code":"invalid_prompt","message":"Invalid Responses API request"},'
        '"metadata":null}',
        "The model's server rejected the request with HTTP 400 (invalid_request). An "
        "administrator can find the details in the log.",
    ),
    "Copilot's model of another API": RefusedBody(
        400,
        '{"error":{"message":"model gpt-4o does not support Responses API.","code":'
        '"unsupported_api_for_model","param":"model","type":"invalid_request_error"}}',
        NOT_THERE,
    ),
    "Copilot without the model": RefusedBody(
        400,
        '{"error":{"message":"The requested model is not supported.","code":'
        '"model_not_supported","param":"model","type":"invalid_request_error"}}',
        NOT_THERE,
    ),
    "Copilot with the reasoning of another account": RefusedBody(
        401,
        '{"error":{"message":"input item ID does not belong to this connection",'
        '"code":""}}',
        "OpenAI could not read the reasoning of an earlier answer in this chat. Start a "
        "new chat.",
    ),
    "Cloudflare without the model": RefusedBody(
        400,
        '{"success":false,"errors":[{"code":5007,"message":"No such model @cf/x or '
        'task, model not found"}],"messages":[],"result":null}',
        NOT_THERE,
    ),
    "LiteLLM's guardrail": RefusedBody(
        400,
        '{"error":{"message":{"error":"Violated guardrail policy","aporia_ai_response":'
        '{"action":"block"}},"type":"None","param":"None","code":"400"}}',
        FILTERED,
    ),
    "LiteLLM's moderation": RefusedBody(
        400,
        '{"error":{"message":{"error":"Violated OpenAI moderation policy",'
        '"moderation_result":{}},"type":"None","param":"None","code":"400"}}',
        FILTERED,
    ),
    "xAI without credit": RefusedBody(
        429,
        '{"code":"Some resource has been exhausted","error":"Your team 16f2151a-40f4 '
        "has either used all available credits or reached its monthly spending limit. "
        'To continue making API requests, please purchase more credits."}',
        NO_CREDIT,
    ),
    "new-api's channel without this API": RefusedBody(
        500,
        '{"error":{"message":"not implemented (request id: 20261128)","type":'
        '"new_api_error","param":"","code":"convert_request_failed"}}',
        NOT_THERE,
    ),
    "new-api without credit": RefusedBody(
        403,
        '{"error":{"code":"insufficient_user_quota","message":"user quota is not '
        'enough (request id: 20261128)","type":"new_api_error","param":""}}',
        NO_CREDIT,
    ),
    "SGLang's context": RefusedBody(
        400,
        '{"object":"error","message":"The input (9000 tokens) is longer than the '
        'model\'s context length (8192 tokens).","type":"BadRequestError",'
        '"param":null,"code":400}',
        TOO_LONG,
    ),
    "Ollama's context": RefusedBody(
        400,
        '{"error":{"message":"the input length exceeds the context length","type":'
        '"invalid_request_error","param":null,"code":null}}',
        TOO_LONG,
    ),
    "LM Studio's context": RefusedBody(
        400,
        '{"error":"Trying to keep the first 9000 tokens when context the overflows. '
        "However, the model is loaded with context length of only 4096 tokens, which "
        'is not enough."}',
        TOO_LONG,
    ),
    "another code is exact enough": RefusedBody(
        400,
        '{"error":{"code":"context_length_exceeded","message":"No."},"error_type":'
        '"server"}',
        TOO_LONG,
    ),
    "FastAPI's detail": RefusedBody(
        401,
        '{"detail":{"code":"account_deactivated","message":"No."}}',
        "OpenAI has deactivated the account of the API key. An administrator has to "
        "check API_KEY in the valves of this pipe.",
    ),
    "DashScope's inspection": RefusedBody(
        400,
        '{"error":{"code":"data_inspection_failed","param":null,"message":"Input data '
        'may contain inappropriate content.","type":"data_inspection_failed"}}',
        FILTERED,
    ),
    "Ark's inspection": RefusedBody(
        400,
        '{"error":{"code":"InputTextSensitiveContentDetected","message":"The request '
        'failed because the input text may contain sensitive information.","param":"",'
        '"type":"BadRequest"}}',
        FILTERED,
    ),
    "DeepSeek's inspection": RefusedBody(
        400,
        '{"error":{"message":"Content Exists Risk","type":"invalid_request_error",'
        '"param":null,"code":"invalid_request_error"}}',
        FILTERED,
    ),
    "DashScope without credit": RefusedBody(
        400,
        '{"error":{"code":"Arrearage","param":null,"message":"Access denied, please '
        'make sure your account is in good standing.","type":"Arrearage"}}',
        NO_CREDIT,
    ),
    "Ark without credit": RefusedBody(
        403,
        '{"error":{"code":"AccountOverdueError","message":"The request failed because '
        'your account has an overdue balance.","param":"","type":"Forbidden"}}',
        NO_CREDIT,
    ),
    "Moonshot without credit": RefusedBody(
        429,
        '{"error":{"message":"Your account is suspended, please check your plan and '
        'billing details","type":"exceeded_current_quota_error"}}',
        NO_CREDIT,
    ),
    "Azure's older version": RefusedBody(
        400,
        '{"error":{"code":"BadRequest","message":"API version not supported"}}',
        ADDRESS,
    ),
    "SiliconFlow without credit": RefusedBody(
        403,
        '{"code":30001,"message":"Sorry, your account balance is insufficient",'
        '"data":null}',
        NO_CREDIT,
    ),
    "Zhipu without credit": RefusedBody(
        429,
        '{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}',
        NO_CREDIT,
    ),
    "Zhipu's limit of a plan": RefusedBody(
        429,
        '{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit '
        'will reset at 2026-10-11 01:20:24"}}',
        NO_CREDIT,
    ),
    "Zhipu's inspection": RefusedBody(
        400,
        '{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"},'
        '"contentFilter":[{"level":1,"role":"user"}]}',
        FILTERED,
    ),
    "DashScope's free quota": RefusedBody(
        403,
        '{"error":{"message":"The free tier of the model has been exhausted.","type":'
        '"AllocationQuota.FreeTierOnly","code":"AllocationQuota.FreeTierOnly"}}',
        NO_CREDIT,
    ),
    "Ark's own limit": RefusedBody(
        429,
        '{"error":{"code":"SetLimitExceeded","message":"Your account 21 has reached the '
        'set inference limit for the x model, and the model service has been paused.",'
        '"param":"","type":"TooManyRequests"}}',
        NO_CREDIT,
    ),
    "Ark's context": RefusedBody(
        400,
        '{"error":{"code":"InvalidParameter","message":"Total tokens of image and text '
        'exceed max message tokens. Request id: 02","param":"messages","type":'
        '"BadRequest"}}',
        TOO_LONG,
    ),
    "Cohere's context": RefusedBody(
        400,
        '{"message":"too many tokens: size limit exceeded by 1000 tokens."}',
        TOO_LONG,
    ),
    "Moonshot overloaded": RefusedBody(
        429,
        '{"error":{"message":"The engine is currently overloaded, please try again '
        'later","type":"engine_overloaded_error"}}',
        OVERLOADED,
    ),
    "Google's country": RefusedBody(
        400,
        '[{"error":{"code":400,"message":"User location is not supported for the API '
        'use.","status":"FAILED_PRECONDITION"}}]',
        COUNTRY,
    ),
    "Groq's JSON that its model wrote badly": RefusedBody(
        400,
        '{"error":{"message":"Failed to generate JSON. Please adjust your prompt.",'
        '"type":"invalid_request_error","code":"json_validate_failed",'
        '"failed_generation":"{"}}',
        "The model wrote something that its server could not read. Try again.",
    ),
    "DashScope without the model": RefusedBody(
        400, '{"error":{"message":"model `qwen3-max` is not supported."}}', NOT_THERE
    ),
    "OpenRouter without the model": RefusedBody(
        400, '{"error":{"message":"x/y is not a valid model ID","code":400}}', NOT_THERE
    ),
    "a tool that a model does not take is no missing model": RefusedBody(
        400,
        '{"error":{"message":"The model `x` is not supported with this tool."}}',
        "The model's server rejected the request with HTTP 400. An administrator can "
        "find the details in the log.",
    ),
    "name of the status next to the words": RefusedBody(
        400,
        '{"statusCode":400,"error":"Bad Request","message":"unknown model x"}',
        NOT_THERE,
    ),
    "llama.cpp with a picture that it cannot read": RefusedBody(
        400,
        '{"error":{"code":400,"message":"Failed to load image or audio file","type":'
        '"invalid_request_error"}}',
        IMAGE,
    ),
}
"""By what they are."""

REJECTED = (
    "The model's server rejected the request{}. Sending it again does not help; an "
    "administrator can find the details in the log."
)

FAILED_EVENTS = {
    "recorded": (
        {
            "type": "invalid_request_error",
            "code": None,
            "param": None,
            "message": "Conversation with id 'conv_1' not found.",
        },
        REJECTED.format(" (invalid_request_error)"),
    ),
    "with a place": (
        {
            "type": "invalid_request_error",
            "code": "integer_above_max_value",
            "param": "max_output_tokens",
            "message": "No.",
        },
        REJECTED.format(" (integer_above_max_value) at max_output_tokens"),
    ),
    "without a type": (
        {"code": "unsupported_parameter", "param": "temperature", "message": "No."},
        REJECTED.format(" (unsupported_parameter) at temperature"),
    ),
    "an image": (
        {
            "type": "invalid_request_error",
            "code": "invalid_value",
            "param": "input[9].content[1].image_url",
            "message": "No.",
        },
        IMAGE.replace("chat.", "chat (invalid_value)."),
    ),
    "model access": (
        {
            "type": "service_unavailable_error",
            "code": None,
            "message": "Unable to verify model access right now. Please retry.",
        },
        OVERLOADED,
    ),
    "overloaded": ({"type": "overloaded_error", "message": "Overloaded"}, OVERLOADED),
    "upstream": ({"type": "upstream_error", "message": "No."}, BROKEN_INSIDE),
    "internal": ({"code": "internal_error", "message": "No."}, BROKEN_INSIDE),
    "timeout": (
        {"code": "timeout", "message": "No."},
        "OpenAI took too long to answer. Try again in a moment.",
    ),
    "too many": ({"code": "too_many_requests", "message": "No."}, BUSY),
    "429": ({"code": 429, "message": "No."}, BUSY),
    "503": ({"code": "503", "message": "No."}, OVERLOADED),
    "502": (
        {"code": 502, "message": "No."},
        "OpenAI reported an internal error (HTTP 502). Try again in a moment.",
    ),
    "403": (
        {"code": 403, "message": "No."},
        "The model's server does not allow this request: HTTP 403. An "
        "administrator can find the reason in the log.",
    ),
    "wrong key": ({"code": "invalid_api_key", "message": "No."}, WRONG_KEY),
    "unknown model": ({"code": "model_not_found", "message": "No."}, NOT_THERE),
    "deactivated": (
        {"code": "account_deactivated", "message": "No."},
        "OpenAI has deactivated the account of the API key. An administrator has to "
        "check API_KEY in the valves of this pipe.",
    ),
    "our own word": (
        {"code": "firewall_page", "message": "No."},
        FIREWALL.format(200),
    ),
    "a word for many statuses": (
        {"code": "5", "message": "No."},
        "The model's server reported an error (5). Try again.",
    ),
    "unknown": (
        {"type": "odd_error", "message": "No."},
        "The model's server reported an error (odd_error). Try again.",
    ),
}
"""Errors that come in a stream, or with the status 200, and the messages about them."""
