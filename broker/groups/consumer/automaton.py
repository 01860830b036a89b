"""Automata that match names of topics in linear time, and the making of them.

Nondeterministic, of a bounded size: a name is matched by the set of states that it can be in, one
character after the other, without going back (Thompson's construction). What holds, holds for any
expression a client may send.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

MAX_STATES = 4000
MAX_KNOWN_STATES = 100_000  # in all sets that were reached, before they are forgotten
SET_STATES = 10  # about what a set takes beside its states

Accepts = Callable[[str], bool]
START, END = "start", "end"
TOO_LARGE = "the expression is too large"


class PatternError(ValueError):
    """The expression cannot be used; the text says why and where."""


class PatternPart(NamedTuple):
    """A piece of an automaton: where it begins, and where it ends."""

    first: int
    last: int


class Automaton:
    """States, and the steps between them."""

    def __init__(self) -> None:
        """Without states."""
        self.empty: list[list[tuple[str | None, int]]] = []
        """By state: steps that need no character, some only at an end of the name."""
        self.steps: list[tuple[Accepts, int] | None] = []
        """By state: the step that takes a character."""

    def state(self) -> int:
        """One more state. PatternError when there are too many."""
        if len(self.steps) >= MAX_STATES:
            raise PatternError(TOO_LARGE)
        self.empty.append([])
        self.steps.append(None)
        return len(self.steps) - 1

    def copy(self, part: PatternPart, begin: int, end: int) -> PatternPart:
        """Another copy of a part that has the states from `begin` up to `end`, and leads nowhere.

        PatternError when there are too many states.
        """
        offset = len(self.steps) - begin
        if len(self.steps) + end - begin > MAX_STATES:
            raise PatternError(TOO_LARGE)
        for links, step in zip(self.empty[begin:end], self.steps[begin:end], strict=True):
            self.empty.append([(when, target + offset) for when, target in links])
            self.steps.append(None if step is None else (step[0], step[1] + offset))
        return PatternPart(part.first + offset, part.last + offset)

    def link(self, source: int, target: int, when: str | None = None) -> None:
        """A step that needs no character."""
        self.empty[source].append((when, target))

    def one(self, accepts: Accepts) -> PatternPart:
        """One character."""
        part = PatternPart(self.state(), self.state())
        self.steps[part.first] = accepts, part.last
        return part

    def anchor(self, where: str) -> PatternPart:
        """An end of the name."""
        part = PatternPart(self.state(), self.state())
        self.link(part.first, part.last, where)
        return part

    def nothing(self) -> PatternPart:
        """A part that matches nothing at all."""
        state = self.state()
        return PatternPart(state, state)

    def chain(self, parts: Iterable[PatternPart]) -> PatternPart:
        """One after the other."""
        first = last = self.state()
        for part in parts:
            self.link(last, part.first)
            last = part.last
        return PatternPart(first, last)

    def either(self, parts: Iterable[PatternPart]) -> PatternPart:
        """One of them."""
        whole = PatternPart(self.state(), self.state())
        for part in parts:
            self.link(whole.first, part.first)
            self.link(part.last, whole.last)
        return whole

    def repeated(self, copies: Iterable[PatternPart], least: int, *, for_ever: bool) -> PatternPart:
        """Copies of one part: `least` of them have to match, the last one perhaps again."""
        whole = PatternPart(self.state(), self.state())
        piece = PatternPart(whole.first, whole.first)
        for number, copy in enumerate(copies):
            if number >= least:
                self.link(piece.last, whole.last)
            self.link(piece.last, copy.first)
            piece = copy
        if for_ever:
            self.link(piece.last, piece.first)
        self.link(piece.last, whole.last)
        return whole


class Matcher:
    """A finished automaton. Not to be used by two threads at once."""

    def __init__(self, automaton: Automaton, part: PatternPart) -> None:
        """`part` is the whole of it."""
        self._empty, self._steps, self._last = automaton.empty, automaton.steps, part.last
        self.visits: int = 0
        """States that were looked at until now: what matching cost."""
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._known_states = 0
        self._begin = self._closure([part.first], is_start=True, is_end=False)

    def matches(self, name: str) -> bool:
        """True when the whole name matches."""
        states = self._begin
        for character in name:
            after = self._known.get((states, character))
            if after is None:
                after = self._after(states, character)
            states = after
            if not states:
                return False
        if not name:
            return self._last in self._closure(states, is_start=True, is_end=True)
        ends = self._known.get((states, END))
        if ends is None:
            ends = self._closure(states, is_start=False, is_end=True)
            self._remember(states, END, ends)
        return self._last in ends

    def _after(self, states: frozenset[int], character: str) -> frozenset[int]:
        """The states behind one more character; copies of a part are asked about it once."""
        self.visits += len(states)
        verdicts: dict[Accepts, bool] = {}
        reached = []
        for state in states:
            step = self._steps[state]
            if step is None:
                continue
            accepts, target = step
            verdict = verdicts.get(accepts)
            if verdict is None:
                verdict = verdicts[accepts] = accepts(character)
            if verdict:
                reached.append(target)
        after = self._closure(reached, is_start=False, is_end=False)
        self._remember(states, character, after)
        return after

    def _remember(self, states: frozenset[int], character: str, after: frozenset[int]) -> None:
        self._known_states += len(after) + SET_STATES
        if self._known_states > MAX_KNOWN_STATES:
            self._known.clear()
            self._known_states = len(after) + SET_STATES
        self._known[states, character] = after

    def _closure(self, states: Iterable[int], *, is_start: bool, is_end: bool) -> frozenset[int]:
        """All states that are reached without another character."""
        holds = {None: True, START: is_start, END: is_end}
        found = set(states)
        waiting = list(found)
        while waiting:
            for when, target in self._empty[waiting.pop()]:
                if target not in found and holds[when]:
                    found.add(target)
                    waiting.append(target)
        self.visits += len(found)
        return frozenset(found)
