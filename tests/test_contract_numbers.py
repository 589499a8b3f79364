"""Files of different releases work together as long as their numbers are the same.

So whoever changes what goes between them has to raise the number. What the last release
has is read from its packed filter.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from owui_controls.switch import CONTROLS_KEY, CONTROLS_VERSION
from owui_manifold.call.config import SWITCH_CONTRACT, read_config
from owui_manifold.call.valves import Valves
from releasing.contents import ADMINISTRATION_ID, READABLE, packed_name
from releasing.packed import read_packed, unpack
from shells.administration import ADMINISTRATION_CONTRACT

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT / "pipes/shells/administration.py"


def released_source() -> str:
    packed = ROOT / "release" / packed_name(ADMINISTRATION_ID)
    return unpack(read_packed(packed), READABLE[ADMINISTRATION_ID])


def members(source: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the class and the code of each member, of classes with one of these bases."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        if not any(ast.unparse(base) in kinds for base in node.bases):
            continue
        for member in node.body:
            if isinstance(member, ast.AnnAssign):
                yield node.name, ast.unparse(member)
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                member.body = [ast.Pass()]
                yield node.name, ast.unparse(member)


def released_contract(source: str) -> int:
    for name in ("ADMINISTRATION_CONTRACT", "CONTRACT"):
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=target)], value=ast.Constant(value=int(number))
                ) if (target == name):
                    return number
    raise AssertionError("no number")


def test_last_filter_and_the_pipe_understand_each_other() -> None:
    """The pipe calls what the filter has and says what it reads; or the number differs.

    More facts than the filter knows are no fault.
    """
    released = released_source()
    if released_contract(released) != ADMINISTRATION_CONTRACT:
        pytest.skip("the number was raised")
    shared = SHARED.read_text("utf-8")

    called = set(members(shared, ("Protocol", "NamedTuple")))
    needed = set(members(released, ("TypedDict",)))

    assert len(called) > 20
    assert called - set(members(released, ("Protocol", "NamedTuple"))) == set()
    assert ("CallFacts", "user_id: str") in needed
    assert needed - set(members(shared, ("TypedDict",))) == set()


@pytest.mark.parametrize("number", [SWITCH_CONTRACT, SWITCH_CONTRACT + 1])
def test_switches_are_told_apart_by_their_number(number: int) -> None:
    """The pipe and its switches have the same."""
    wishes = {"version": number, "agent": True}
    config = read_config(Valves(), metadata={CONTROLS_KEY: wishes})

    assert CONTROLS_VERSION == SWITCH_CONTRACT
    assert config.wants_agent is (number == SWITCH_CONTRACT)
    assert any("`/check`" in problem for problem in config.problems) is (
        number != SWITCH_CONTRACT
    )
