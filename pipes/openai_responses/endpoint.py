"""Where requests go: address, headers, certificates and proxy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from openai_responses.digest import hex_digest
from openai_responses.errors import InvalidRequest, InvalidSetting
from openai_responses.redaction import header_secrets

DEFAULT_BASE_URL = "https://api.openai.com/v1"

Compatibility = Literal["auto", "openai", "strict"]
"""`openai`: the server takes whatever OpenAI takes. `strict`: it takes only what every
server of the Responses API takes. `auto`: its address says which."""

_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")
_AROUND_KEYS = (
    " \t\r\n\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
)
_SCHEME = "bearer "


def bare_key(text: str) -> str:
    """Return a key without what is copied with it: quotes, and `Bearer` of a header."""
    key = text.strip(_AROUND_KEYS)
    if key.lower().startswith(_SCHEME):
        key = key[len(_SCHEME) :].strip(_AROUND_KEYS)
    return key


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the key of a server; an address can contain a password.

    An empty `ca_bundle` (a file) or `proxy` means what the system has set. A `token` is
    sent instead of the key, always as a bearer's; it is no part of the account.

    What a server is taken for, by its address and its `compatibility`:

                         is_openai    has_own_services    serves_openai    is_gateway
        OpenAI           yes          yes                 yes              no
        OpenAI, strict   no           no                  yes              no
        Azure            no           yes                 yes              no
        Azure, strict    no           no                  yes              no
        other            no           no                  no               yes
        other, openai    yes          yes                 yes              yes
        other, strict    no           no                  no               yes
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    organization: str = ""
    project: str = ""
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify_ssl: bool = True
    ca_bundle: str = ""
    proxy: str = field(default="", repr=False)
    compatibility: Compatibility = "auto"
    token: str = field(default="", repr=False)

    def url(self, path: str) -> str:
        """Return the address of `path`, with Azure's `api-version`.

        Raises InvalidRequest.
        """
        address = _normalize_base_url(self.base_url) + path
        query = urlsplit(self.base_url.strip()).query
        if not query:
            return address
        separator = "&" if "?" in path else "?"
        return f"{address}{separator}{query}"

    @property
    def host(self) -> str:
        """The server's name; raises the same error as `url`."""
        return urlsplit(_normalize_base_url(self.base_url)).hostname or ""

    def name_server(self, message: str) -> str:
        """Return the `message` about OpenAI as one about this server."""
        # First, because `host` raises for an invalid address, and the message about
        # such an address has to pass.
        if "OpenAI" not in message or self._has_openai_host:
            return message
        return message.replace("OpenAI", self.host)

    @property
    def _has_openai_host(self) -> bool:
        return f".{self.host}".endswith(".openai.com")

    @property
    def sends_token_alone(self) -> bool:
        """Whether a token of this server or of whoever asks is sent, and no key."""
        return bool(self.token) and not self.api_key.strip()

    @property
    def is_strict(self) -> bool:
        """Whether requests have a form that every server accepts."""
        return self.compatibility == "strict"

    @property
    def is_openai(self) -> bool:
        """Whether it takes OpenAI's own kinds of input."""
        if self._has_openai_host and not self.is_strict:
            return True
        return self.compatibility == "openai" and not self.is_azure

    @property
    def has_own_services(self) -> bool:
        """Whether it has web search, containers and files, as OpenAI and Azure do."""
        return self.is_openai or (self.is_azure and not self.is_strict)

    @property
    def serves_openai(self) -> bool:
        """Whether its models and prices are OpenAI's, as far as anybody has said."""
        return self.is_openai or not self.is_gateway

    @property
    def is_gateway(self) -> bool:
        """Whether it is neither OpenAI's nor Azure's."""
        return not (self._has_openai_host or self.is_azure)

    @property
    def is_azure(self) -> bool:
        """Whether it is one of Azure."""
        return self.host.endswith(_AZURE_HOSTS)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be in no text that the server sends back.

        Some addresses have a key in their query, next to Azure's version.
        """
        headers = self.extra_headers.values()
        parts = url_parts(self.base_url.strip())
        query = parse_qsl(parts.query) if parts else ()
        keys = [value for name, value in query if name != "api-version"]
        return connection_secrets(headers, self.proxy, self.api_key, self.token, *keys)

    def account(self) -> str:
        """Return a name of the account, without the key."""
        identity = f"{self.base_url}\n{self.organization}\n{self.api_key}"
        return hex_digest(identity)

    def reasoning_scope_id(self) -> str:
        """Return an id of those who can read encrypted reasoning, without the key.

        Keys of one organization can read each other's.
        """
        identity = f"{self.host}\n{self.organization or self.api_key.strip()}"
        return hex_digest(identity)[:16]

    def headers(self) -> dict[str, str]:
        """Return the headers of a request; `extra_headers` have priority."""
        key = self.api_key.strip()
        headers: dict[str, str] = {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.is_azure:
            headers["api-key"] = key
        else:
            headers["Authorization"] = f"Bearer {key}"
        headers["Content-Type"] = "application/json"
        if self.organization:
            headers["OpenAI-Organization"] = self.organization
        if self.project:
            headers["OpenAI-Project"] = self.project
        replaced = {name.lower() for name in self.extra_headers}
        for name in list(headers):
            if name.lower() in replaced:
                del headers[name]
        return {**headers, **self.extra_headers}


@lru_cache(maxsize=32)  # an answer asks for the server's name about twenty times
def _normalize_base_url(text: str) -> str:
    """Return an address that paths like `/responses` can be added to.

    Administrators leave out the path, or write a slash after it, or the whole address
    of the Responses API. Raises InvalidSetting.
    """
    parts = url_parts(text.strip() or DEFAULT_BASE_URL)
    if parts is None:
        raise InvalidSetting(
            "base_url",
            "The address of the model's server is not an http or https address.",
        )
    if "@" in parts.netloc:
        raise InvalidSetting(
            "base_url",
            "The address of the model's server contains a user name or a password.",
        )
    stated_path = parts.path.rstrip("/")
    path = stated_path.removesuffix("/responses").rstrip("/")
    if not stated_path:
        is_azure = str(parts.hostname).endswith(_AZURE_HOSTS)
        path = "/openai/v1" if is_azure else "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def connection_secrets(
    headers: Iterable[str], proxy: str, *keys: str
) -> tuple[str, ...]:
    """Return the texts that must be in no line of a log."""
    secrets = [*keys, proxy]
    parts = url_parts(proxy.strip())
    if parts and parts.password:
        secrets.append(unquote(parts.password))
    for value in headers:
        secrets += header_secrets(value)
    return tuple(secret for secret in secrets if secret.strip())


def url_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None for anything else.

    Brackets without an address and a port that is no number are a ValueError.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return None
    return parts


def proxy_for(endpoint: Endpoint, url: str) -> str | None:
    """Return the proxy on the way to `url`, or None; its scheme may be left out."""
    stated = endpoint.proxy.strip()
    proxy = stated
    if not stated:
        # Each call reads the whole environment. If it names no proxy, one is enough.
        proxies = getproxies()
        parts = urlsplit(url)
        proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
        if not proxy:
            return None
        if proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
            return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is not None:
        return address
    if stated:
        raise InvalidSetting("proxy", "The proxy is not an http or https address.")
    raise InvalidRequest(
        "The proxy that this server's environment names is not an http or https "
        "address. An administrator has to correct the environment.",
        remedy="setup",
    )
