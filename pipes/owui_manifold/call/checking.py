"""Decides where a call is answered, and what its caller may set.

The administration's filter may choose the endpoint. It also fetches the tokens of
Microsoft Entra ID.
"""

from dataclasses import replace

from openai_responses.endpoint import Endpoint
from openai_responses.errors import REASON_GIVEN, InvalidRequest
from openai_responses.json_input import as_text
from owui_manifold.call.agent import answering_name
from owui_manifold.call.callers import apply_stated_parameters, drop_forbidden_keys
from owui_manifold.call.config import build_endpoint
from owui_manifold.call.context import ArrivedCall, Call, resolve_call
from owui_manifold.call.research import check_research
from owui_manifold.call.valves import CALL_TOKENS
from owui_manifold.host.open_webui import (
    active_administration,
    fill_in_headers,
    identity_headers,
    user_token,
)
from shells.administration import (
    ADMINISTRATION_ID,
    CallAccount,
    CallFacts,
    EndpointQueue,
)
from shells.valve_messages import PIPE_SHELL, valve_error

_NO_ENTRA = (
    f"AUTH `entra_id` needs the filter {ADMINISTRATION_ID}. An administrator has to "
    "install it."
)

_NO_TOKEN = {
    "session": "This request has no login of Open WebUI to send to the model's server. "
    "In a chat, sign in again; an automation has no login.",
    "system_oauth": "The model's server needs your OAuth token, and Open WebUI has none. "
    "Sign out, and sign in with single sign-on.",
}


async def check_call(arrived: ArrivedCall, account: CallAccount | None = None) -> Call:
    """Return the call with its endpoint and model, without what it may not set.

    A call that already has an account goes to the endpoint that the account chooses now:
    after a failure that is the next one. Raises InvalidRequest for what an administrator
    or the caller has to change.
    """
    if account is None:
        administration = await active_administration(arrived.host.request)
        if administration is not None:
            account = await administration.begin(call_facts(arrived))
    return await _check_at(arrived, account, account.endpoints if account else None)


async def _check_at(
    arrived: ArrivedCall, account: CallAccount | None, endpoints: EndpointQueue | None
) -> Call:
    """Return the call with what it may set, answered at the first of the endpoints."""
    config = arrived.config
    if endpoints:
        if endpoints.problem:
            raise InvalidRequest(endpoints.problem, remedy="setup")
        values = dict(endpoints.valves())
        # The only value that is a key of EXPERT_JSON and not a valve.
        scope = values.pop("ENTRA_SCOPE", "")
        config = config._replace(
            valves=config.valves.model_copy(update=values),
            expert=config.expert.model_copy(update={"entra_scope": scope}),
            shell=config.shell._replace(in_entry=frozenset(values)),
        )
        arrived = replace(arrived, config=config)
    is_admin = arrived.caller.is_admin
    endpoint = build_endpoint(config.valves, config.own_key, is_admin=is_admin)
    # An address that cannot be used is an error of ours: the filter's, which would look
    # at it next, have classes of another file.
    endpoint.url("")
    if not config.own_key and config.valves.AUTH in CALL_TOKENS:
        if config.valves.AUTH == "entra_id":
            token = await _entra_token(arrived, account)
        else:
            token = await _user_token(arrived, endpoint)
        endpoint = replace(endpoint, token=token)
    arrived.log.hide(*endpoint.secrets)
    headers = await fill_in_headers(
        arrived.host,
        arrived.caller.user_id,
        arrived.caller.host_model,
        endpoint.extra_headers,
    )
    # Headers that tell the server who asks, if it may know; EXTRA_HEADERS come first.
    forwards = config.valves.FORWARD_USER_INFO
    if forwards == "always" or (forwards == "auto" and endpoint.is_gateway):
        identity = await identity_headers(arrived.host, arrived.caller.user_id)
        headers = {**identity, **headers}
    endpoint = replace(endpoint, extra_headers=headers)
    call = resolve_call(arrived, endpoint, account)
    check_research(call)
    call = await drop_forbidden_keys(call)
    return await apply_stated_parameters(call)


def call_facts(arrived: ArrivedCall) -> CallFacts:
    """Return what the administration's filter is told of a call."""
    caller = arrived.caller
    config = arrived.config
    # Whoever has the administrator's headers may be served without a valid key, and so
    # may anybody at a gateway. A key for Azure belongs to whoever owns the resource.
    user_pays = False
    if config.own_key:
        endpoint = build_endpoint(config.valves, config.own_key)
        is_openai = not endpoint.is_gateway and not endpoint.is_azure
        user_pays = is_openai and not endpoint.extra_headers
    return CallFacts(
        user_id=caller.user_id,
        email=as_text(arrived.host.user.get("email")),
        role=as_text(arrived.host.user.get("role")),
        model=answering_name(caller.model, config.agent),
        host_model=caller.host_model,
        task=caller.task,
        base_url=config.valves.BASE_URL,
        has_own_key=bool(config.own_key),
        user_pays=user_pays,
    )


async def calls_to_each_endpoint(arrived: ArrivedCall, call: Call) -> list[Call | str]:
    """Return a call to each entry of ENDPOINTS_JSON, also of other groups and models.

    A text says why nothing can be sent to an entry. `call` is what became of `arrived`.
    A check with a key of one's own is about that key.
    """
    if call.account is None or arrived.config.own_key:
        return []
    models = [call.caller.model]
    for name in call.valves.model_names():
        if name != "auto":
            models.append(name)
    checks: list[Call | str] = []
    for trial in call.account.endpoint_trials(models):
        caller = call.caller._replace(
            host_model=f"{call.caller.function_id}.{trial.model}"
        )
        trial_call = replace(arrived, caller=caller)
        try:
            checks.append(await _check_at(trial_call, call.account, trial.endpoints))
        except InvalidRequest as error:
            checks.append(str(error))
    return checks


async def _entra_token(arrived: ArrivedCall, account: CallAccount | None) -> str:
    """Return a token of Entra ID; raises InvalidRequest."""
    if account is None:
        raise InvalidRequest(_NO_ENTRA, remedy="setup")
    config = arrived.config
    token, problem = await account.entra_token(
        config.valves.BASE_URL, config.expert.entra_scope
    )
    if problem:
        arrived.log.warn(problem)
        shown = problem.partition(REASON_GIVEN)[0]
        message = problem if arrived.caller.reads_reasons else shown
        raise InvalidRequest(message, remedy="setup")
    return token


async def _user_token(arrived: ArrivedCall, endpoint: Endpoint) -> str:
    """Return a token of whoever asks; raises InvalidRequest.

    It opens the user's account at Open WebUI or at the identity provider, so it goes to
    no server but a gateway.
    """
    auth = arrived.config.valves.AUTH
    if not endpoint.is_gateway:
        raise valve_error(f"AUTH is {auth}, which only gateways get", PIPE_SHELL)
    token = await user_token(arrived.host, auth, arrived.caller.user_id)
    if not token:
        raise InvalidRequest(_NO_TOKEN[auth])
    return token
