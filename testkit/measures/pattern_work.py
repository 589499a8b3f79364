"""Counts the steps in which a backtracking matcher reads a text with a pattern.

`re` backtracks, but it counts nothing, and a time says little on a busy computer. This
matcher reads the tree that `re` itself parses and takes the same alternatives in the
same order, without its short cuts: its steps are an upper bound of those of `re`. A
reference to a group is read as the group itself, which matches that text among others.

Repeats with a limit above `SHORT_LIMIT` are read with that limit, because a small text
would not show that they end. Another count says what a higher limit costs.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

PARSER: Any = re._parser  # type: ignore[attr-defined]
CODES: Any = re._constants  # type: ignore[attr-defined]

SHORT_LIMIT = 12
ENDLESS_STEPS = 400_000
"""Where counting stops; a linear pattern stays far below with the texts of this module.
"""
_COMMON_SIGNS = "aA0_-. \n/\0é\"'`<>[](){}:"
_MOST_PREFIXES = 10
_MOST_SHORT_UNITS = 20
_MOST_LONG_UNITS = 6
_MOST_COMPARED = 6

END = ""
"""What comes after the last character of a text, and is in no set."""
Condition = Callable[[str, int], bool]
"""Says whether a text holds something at a place."""


class Signs(dict[str, bool]):
    """Says of each character whether it is one of a set, and remembers the answer."""

    def __init__(self, fits: Callable[[str], bool]) -> None:
        super().__init__({END: False})
        self._fits = fits

    def __missing__(self, sign: str) -> bool:
        return self.setdefault(sign, self._fits(sign))


@dataclass(frozen=True, slots=True)
class Sign:
    """Reads one character of a set."""

    fits: Signs


@dataclass(frozen=True, slots=True)
class Split:
    """Goes on at a place of the program; if that fails, at the last of the others."""

    first: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Goes on where a condition holds, and reads nothing."""

    holds: Condition


@dataclass(frozen=True, slots=True)
class Look:
    """Goes on where a program matches, or does not, from `behind` characters before."""

    program: "Program"
    behind: int
    wanted: bool


@dataclass(frozen=True, slots=True)
class Atom:
    """Goes on after the first match of a program, and never tries another one."""

    program: "Program"


class Match:
    """Ends a program."""


_UNKNOWN = Split(0)
"""Takes the place of a split until its targets are known."""
Step = Sign | Split | Check | Look | Atom | Match
Program = list[Step]
HostileText = tuple[str, str, str]
"""A begin, what is repeated, and an end."""


@dataclass
class CompiledPattern:
    """A pattern as a program, and what is needed to make texts for it."""

    pattern: str
    tree: Any
    program: Program = field(default_factory=list)
    signs: list[Signs] = field(default_factory=list)
    has_repeat: bool = False
    """Whether a part is read a number of times that the text decides."""
    has_long_limit: bool = False
    """Whether a repeat has a higher limit than the one it was compiled with."""
    has_empty_loop: bool = False
    """Whether an unlimited repeat may read nothing in a turn."""
    groups: dict[int, Any] = field(default_factory=dict)
    """The trees of the groups, by their numbers."""


def compile_pattern(
    pattern: str | bytes, flags: int, *, whole: bool, limit: int = SHORT_LIMIT
) -> CompiledPattern:
    """Compile a pattern; a `whole` one has to match to the end of the text.

    `limit` is the limit of repeats that have a higher one.
    """
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
        flags &= ~re.UNICODE
    tree = PARSER.parse(pattern, flags)
    compiled = CompiledPattern(pattern, tree)
    _Compiler(compiled, compiled.program, tree.state.flags, limit).add(tree)
    if whole:
        compiled.program.append(Check(lambda text, position: position == len(text)))
    compiled.program.append(Match())
    return compiled


@dataclass
class _Compiler:
    """Appends the steps of parts of a tree to a program."""

    compiled: CompiledPattern
    program: Program
    flags: int
    limit: int

    def add(self, tree: Any) -> None:
        for code, value in tree:
            self._add_node(code, value)

    def _add_node(self, code: Any, value: Any) -> None:
        fits = character_set(code, value, self.flags)
        if fits is not None:
            signs = Signs(fits)
            self.compiled.signs.append(signs)
            self.program.append(Sign(signs))
        elif code is CODES.BRANCH:
            self._add_branch(value[1])
        elif code in (CODES.SUBPATTERN, CODES.GROUPREF, CODES.GROUPREF_EXISTS):
            self._add_group(code, value)
        elif code is CODES.ATOMIC_GROUP:
            self.program.append(Atom(self._inner(value)))
        elif code is CODES.POSSESSIVE_REPEAT:
            self.program.append(Atom(self._inner([(CODES.MAX_REPEAT, value)])))
        elif code in (CODES.MAX_REPEAT, CODES.MIN_REPEAT):
            self._add_repeat(*value, is_lazy=code is CODES.MIN_REPEAT)
        elif code is CODES.AT:
            self.program.append(Check(position_check(value, self.flags)))
        elif code in (CODES.ASSERT, CODES.ASSERT_NOT):
            self._add_look(value, wanted=code is CODES.ASSERT)
        else:
            raise NotImplementedError(f"{code} {value}")

    def _add_group(self, code: Any, value: Any) -> None:
        """Append a group, a reference to one, or what depends on whether it matched."""
        if code is CODES.SUBPATTERN:
            self.compiled.groups[value[0]] = value[3]
            self.add(value[3])
        elif code is CODES.GROUPREF:
            self.add(self.compiled.groups[value])
        else:
            _, if_matched, if_not = value
            self._add_branch([if_matched, if_not or ()])

    def _add_branch(self, alternatives: Any) -> None:
        split = len(self.program)
        self.program.append(_UNKNOWN)
        starts = []
        ends = []
        for alternative in alternatives:
            starts.append(len(self.program))
            self.add(alternative)
            ends.append(len(self.program))
            self.program.append(_UNKNOWN)
        self.program[split] = Split(starts[0], tuple(starts[:0:-1]))
        for end in ends:
            self.program[end] = Split(len(self.program))

    def _add_repeat(self, least: int, most: Any, body: Any, *, is_lazy: bool) -> None:
        self.compiled.has_repeat |= most != least
        self.compiled.has_long_limit |= least > self.limit or (
            most is not CODES.MAXREPEAT and most > self.limit
        )
        for _ in range(min(least, self.limit)):
            self.add(body)
        splits = []
        if most is CODES.MAXREPEAT:
            self.compiled.has_empty_loop |= body.getwidth()[0] == 0
            splits.append(self._add_optional(body))
            self.program.append(Split(splits[0]))
        else:
            for _ in range(min(most - least, self.limit)):
                splits.append(self._add_optional(body))
        for split in splits:
            inside, after = split + 1, len(self.program)
            self.program[split] = (
                Split(after, (inside,)) if is_lazy else Split(inside, (after,))
            )

    def _add_optional(self, body: Any) -> int:
        """Append a part that may be left out; return where that is decided."""
        split = len(self.program)
        self.program.append(_UNKNOWN)
        self.add(body)
        return split

    def _add_look(self, value: Any, *, wanted: bool) -> None:
        direction, body = value
        behind = body.getwidth()[1] if direction < 0 else 0
        self.program.append(Look(self._inner(body), behind, wanted))

    def _inner(self, tree: Any) -> Program:
        """Return the steps of a sequence as a program of its own."""
        program: Program = []
        _Compiler(self.compiled, program, self.flags, self.limit).add(tree)
        program.append(Match())
        return program


def character_set(code: Any, value: Any, flags: int) -> Callable[[str], bool] | None:
    """Return what says whether a character is read by a part; None for other parts."""
    folds = bool(flags & re.IGNORECASE)
    if code is CODES.LITERAL:
        return _literal(value, folds=folds)
    if code is CODES.NOT_LITERAL:
        fits = _literal(value, folds=folds)
        return lambda sign: not fits(sign)
    if code is CODES.ANY:
        return lambda sign: sign != "\n" or bool(flags & re.DOTALL)
    if code is CODES.IN:
        return _union(value, flags)
    return None


def _literal(value: int, *, folds: bool) -> Callable[[str], bool]:
    if folds:
        return lambda sign: sign.lower() == chr(value).lower()
    return lambda sign: ord(sign) == value


def _union(rows: Any, flags: int) -> Callable[[str], bool]:
    is_negated = rows[0][0] is CODES.NEGATE
    members = [_member(code, value, flags) for code, value in rows[is_negated:]]
    return lambda sign: any(member(sign) for member in members) != is_negated


def _member(code: Any, value: Any, flags: int) -> Callable[[str], bool]:
    if code is CODES.CATEGORY:
        return _category(value, flags)
    if code is CODES.RANGE:
        low, high = value
        if flags & re.IGNORECASE:
            return lambda sign: any(
                low <= ord(form[:1] or "\0") <= high
                for form in (sign.lower(), sign.upper())
            )
        return lambda sign: low <= ord(sign) <= high
    return _literal(value, folds=bool(flags & re.IGNORECASE))


def _category(value: Any, flags: int) -> Callable[[str], bool]:
    text = {
        CODES.CATEGORY_DIGIT: r"\d",
        CODES.CATEGORY_NOT_DIGIT: r"\D",
        CODES.CATEGORY_SPACE: r"\s",
        CODES.CATEGORY_NOT_SPACE: r"\S",
        CODES.CATEGORY_WORD: r"\w",
        CODES.CATEGORY_NOT_WORD: r"\W",
    }[value]
    compiled = re.compile(text, flags & re.ASCII)
    return lambda sign: bool(compiled.match(sign))


def position_check(value: Any, flags: int) -> Condition:
    """Return the condition of an anchor or a boundary of a word."""
    text = {
        CODES.AT_BEGINNING: "^",
        CODES.AT_BEGINNING_STRING: r"\A",
        CODES.AT_END: "$",
        CODES.AT_END_STRING: r"\Z",
        CODES.AT_BOUNDARY: r"\b",
        CODES.AT_NON_BOUNDARY: r"\B",
    }[value]
    compiled = re.compile(text, flags & (re.ASCII | re.MULTILINE))
    return lambda text, position: bool(compiled.match(text, position))


def _alphabet(signs: list[Signs], pattern: str) -> list[str]:
    """Return one character for each way in which the sets of a pattern divide them."""
    kinds: dict[tuple[bool, ...], str] = {}
    for sign in dict.fromkeys([*_COMMON_SIGNS, *pattern]):
        kinds.setdefault(tuple(fits[sign] for fits in signs), sign)
    return list(kinds.values())


@dataclass
class _Sampler:
    """Collects texts that parts of a tree match, and what leads to each part."""

    compiled: CompiledPattern
    alphabet: list[str]
    samples: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)
    beginnings: set[str] = field(default_factory=set)
    """What leads to a repeat without a limit: each of many may read on to the end."""

    def sample(self, tree: Any, before: str) -> str:
        """Return a text that a sequence matches, after the text `before`."""
        text = ""
        for code, value in tree:
            self.prefixes.add(before + text)
            text += self._sample_node(code, value, before + text)
        self.samples.add(text)
        return text

    def _sample_node(self, code: Any, value: Any, before: str) -> str:
        fits = character_set(code, value, self.compiled.tree.state.flags)
        if fits is not None:
            fitting = [sign for sign in self.alphabet if fits(sign)]
            return fitting[0] if fitting else ""
        if code is CODES.BRANCH:
            texts = [self.sample(alternative, before) for alternative in value[1]]
            return texts[0]
        if code is CODES.SUBPATTERN:
            return self.sample(value[3], before)
        if code is CODES.GROUPREF:
            return self.sample(self.compiled.groups[value], before)
        if code in (CODES.MAX_REPEAT, CODES.MIN_REPEAT, CODES.POSSESSIVE_REPEAT):
            least, most, body = value
            if most is CODES.MAXREPEAT:
                self.beginnings.add(before)
            times: int = max(1, min(least, SHORT_LIMIT))
            return self.sample(body, before) * times
        return ""


def count_steps(program: Program, text: str, *, searches: bool) -> int:
    """Return the steps of a match at the start of a text, or of all in it."""
    steps = 0
    start = 0
    signs = [*text, END]
    while start <= len(text):
        spent, end = _run(program, text, signs, start)
        steps += spent
        if not searches or steps > ENDLESS_STEPS:
            break
        start = end if end is not None and end > start else start + 1
    return steps


def match_end(program: Program, text: str) -> int | None:
    """Return where a match at the start of a text ends; None for no match."""
    return _run(program, text, [*text, END], 0)[1]


def _run(
    program: Program, text: str, signs: Sequence[str], start: int
) -> tuple[int, int | None]:
    """Return the steps of a match at a place, and where it ends; None for no match.

    It takes a million steps for each pattern: `signs` are those of the text and `END`.
    """
    steps = 0
    waiting = [(0, start)]
    while waiting:
        at, position = waiting.pop()
        while steps <= ENDLESS_STEPS:  # what follows a step needs no place to wait
            steps += 1
            step = program[at]
            at += 1
            if isinstance(step, Sign):
                if not step.fits[signs[position]]:
                    break
                position += 1
            elif isinstance(step, Split):
                for other in step.others:
                    waiting.append((other, position))
                at = step.first
            elif isinstance(step, Match):
                return steps, position
            elif isinstance(step, Check):
                if not step.holds(text, position):
                    break
            else:
                spent, end = _run_inner(step, text, signs, position)
                steps += spent
                if end is None:
                    break
                position = end
        else:
            break
    return steps, None


def _run_inner(
    step: Look | Atom, text: str, signs: Sequence[str], position: int
) -> tuple[int, int | None]:
    """Return the steps of a program inside of a step, and where reading goes on."""
    if isinstance(step, Atom):
        return _run(step.program, text, signs, position)
    spent = 0
    end = None
    if position >= step.behind:
        spent, end = _run(step.program, text, signs, position - step.behind)
    is_fulfilled = (end is not None) == step.wanted
    return spent, position if is_fulfilled else None


def hostile_texts(compiled: CompiledPattern, ending: str) -> Iterator[HostileText]:
    """Yield texts that may be hard to read.

    All of them end with `ending`.
    """
    alphabet = _alphabet(compiled.signs, compiled.pattern)
    sampler = _Sampler(compiled, alphabet)
    sampler.sample(compiled.tree, "")
    prefixes = _by_length(sampler.prefixes | {""})[:_MOST_PREFIXES]
    units = _by_length(sampler.samples | sampler.prefixes | set(alphabet))
    units = [unit for unit in units if unit]
    chosen = [*units[:_MOST_SHORT_UNITS], *units[-_MOST_LONG_UNITS:]]
    chosen += _by_length(sampler.beginnings - {""})
    ends = (ending, "\0" + ending)
    yield from product(prefixes, dict.fromkeys(chosen), ends)


def _by_length(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=lambda text: (len(text), text))


def worst_growth(
    compiled: CompiledPattern, hardest: Iterable[HostileText], *, searches: bool
) -> tuple[float, str]:
    """Return the largest factor of work when one of the texts doubles, and the text."""
    worst = 0.0
    worst_text = ""
    for parts in hardest:
        small, large = (
            count_steps(compiled.program, _repeated(parts, times), searches=searches)
            for times in (96, 192)
        )
        growth = large / small if large <= ENDLESS_STEPS else float("inf")
        if growth > worst:
            worst = growth
            worst_text = f"{parts[0]!r} + n * {parts[1]!r} + {parts[2]!r}"
    return worst, worst_text


def worst_limit_growth(
    compiled: CompiledPattern,
    wider: CompiledPattern,
    hardest: Iterable[HostileText],
    *,
    searches: bool,
) -> float:
    """Return the largest factor of work on one of the texts with a `wider` limit.

    `wider` is the same pattern, compiled with a higher limit of its repeats.
    """
    worst = 0.0
    for parts in hardest:
        text = _repeated(parts, 96)
        steps = count_steps(compiled.program, text, searches=searches)
        wide = count_steps(wider.program, text, searches=searches)
        worst = max(worst, wide / steps)
    return worst


def hardest_texts(
    compiled: CompiledPattern, *, searches: bool, ending: str = ""
) -> set[HostileText]:
    """Return the hostile texts that grew most, and that took most, at small sizes.

    One on which a pattern does not come to an end is enough.
    """
    rows = []
    for parts in hostile_texts(compiled, ending):
        small, large = (
            count_steps(compiled.program, _repeated(parts, times), searches=searches)
            for times in (8, 32)
        )
        if large > ENDLESS_STEPS:
            return {parts}
        rows.append((large / small, large, parts))
    by_growth = sorted(rows, key=lambda row: row[0])[-_MOST_COMPARED:]
    by_work = sorted(rows, key=lambda row: row[1])[-_MOST_COMPARED:]
    return {parts for _, _, parts in (*by_growth, *by_work)}


def _repeated(parts: HostileText, times: int) -> str:
    """Return a text of about `times` characters, with a long part `times / 8` times."""
    begin, unit, end = parts
    return begin + unit * max(times // 8, times // len(unit)) + end
