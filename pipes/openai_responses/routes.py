"""The way to a server: whose certificates to trust, which proxy to take."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openai_responses.endpoint import Network, url_parts
from openai_responses.errors import InvalidRequest


class Trust:
    """The certificates of CA bundles, one context a file: or nothing is reused."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._contexts: dict[tuple[str, int], ssl.SSLContext] = {}

    def context(self, network: Network) -> ssl.SSLContext | bool:
        """Return whom to trust, in the form that aiohttp takes."""
        if not network.verify_ssl or not network.ca_bundle:
            return network.verify_ssl
        path = network.ca_bundle
        try:
            key = (path, Path(path).stat().st_mtime_ns)
            if key not in self._contexts:
                self._contexts[key] = ssl.create_default_context(cafile=path)
            return self._contexts[key]
        except (OSError, ValueError):  # no such file, or no certificates in it
            raise InvalidRequest(
                "CA_BUNDLE is not a file with certificates that this server can read. "
                "An administrator has to correct it in the valves of this pipe."
            ) from None


def proxy_for(network: Network, url: str) -> str | None:
    """Return the proxy on the way to `url`, or None; its scheme may be left out."""
    proxy = network.proxy.strip() or _environment_proxy(url)
    if not proxy:
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is None:
        raise InvalidRequest(
            "The proxy on the way to the model's server is not an http or https "
            "address. An administrator has to correct PROXY in the valves of this "
            "pipe, or the environment of Open WebUI."
        )
    return address


def _environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for `url`, or None."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    # Each of these reads the whole environment: where it names no proxy, one is enough.
    if not proxy or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    return proxy
