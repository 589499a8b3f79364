"""No web page knows the passwords of the servers that the demo starts."""

from pathlib import Path

from demo_secrets import PASSWORD, demo_secrets
from hosts.servers.pipelines_server import PipelinesServer


def test_each_demo_has_its_own(tmp_path: Path) -> None:
    """Unless its folder is kept, with the accounts in it."""
    first = demo_secrets(None)
    kept = demo_secrets(tmp_path / "kept")

    assert len(first[PASSWORD]) == 16
    assert first != demo_secrets(None)
    assert kept == demo_secrets(tmp_path / "kept") != first
    [file] = (tmp_path / "kept").iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_each_pipelines_server_has_a_key_of_its_own() -> None:
    """Whoever has it uploads code."""
    assert PipelinesServer().token != PipelinesServer().token
