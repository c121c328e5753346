"""Which way leads to whom, from what each server says of its links, in whatever order that is heard."""

from collections import deque
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.federation import topology
from culture.federation.topology import LinkState, Topology, Way

NAMES = ("a", "b", "c", "d", "e")
EDGES = tuple(combinations(NAMES, 2))
edges = st.frozensets(st.sampled_from(EDGES))
Edges = frozenset[tuple[str, str]]


def peers(name: str, edges: Edges) -> frozenset[str]:
    return frozenset(each for edge in edges if name in edge for each in edge if each != name)


def state(name: str, edges: Edges, version: int) -> LinkState:
    return LinkState(version, peers(name, edges), f"{name}.local", name)


def know(own: str, edges: Edges) -> Topology:
    """What a server knows when everything has been said."""
    known = Topology(own)
    tell(known, own, edges, 1)
    return known


def tell(known: Topology, own: str, edges: Edges, version: int) -> None:
    known.direct = set(peers(own, edges))
    for name in NAMES:
        known.take(name, state(name, edges, version))


def distances(own: str, edges: Edges) -> dict[str, int]:
    found, queue = {own: 0}, deque([own])
    while queue:
        here = queue.popleft()
        for there in peers(here, edges) - found.keys():
            found[there] = found[here] + 1
            queue.append(there)
    del found[own]
    return found


@given(st.sampled_from(NAMES), edges)
def test_the_shortest_way_is_found(own: str, edges: Edges) -> None:
    ways = know(own, edges).ways()
    assert {name: way.hops for name, way in ways.items()} == distances(own, edges)
    for name, (hops, via, before) in ways.items():
        assert via in peers(own, edges)
        assert before == own if hops == 1 else ways[before].hops == hops - 1
        assert tuple(sorted((before, name))) in edges


@given(edges, edges, st.permutations([(name, version) for name in NAMES for version in (1, 2)]))
def test_the_order_does_not_matter(before: Edges, after: Edges, order: list[tuple[str, int]]) -> None:
    known = Topology("a")
    known.direct = set(peers("a", after))
    for name, version in order:
        known.take(name, state(name, after if version == 2 else before, version))
    assert known.ways() == know("a", after).ways()


@given(edges, edges, st.permutations(NAMES))
@pytest.mark.fault("D6")
def test_nobody_is_split_off_who_could_be_reached_all_the_time(before: Edges, after: Edges, order: list[str]) -> None:
    """While the news of what changed comes in one by one, whoever the unchanged links reach stays."""
    known = know("a", before)
    known.reckon()
    known.direct = set(peers("a", after))
    lost = set(known.reckon().lost)
    for name in order:
        known.take(name, state(name, after, 2))
        lost |= set(known.reckon().lost)
    assert lost.isdisjoint(distances("a", before & after))


@given(edges, edges)
def test_a_split_names_the_link_that_is_missing(before: Edges, after: Edges) -> None:
    known = know("a", before)
    known.reckon()
    tell(known, "a", after, 2)
    ways, lost = known.reckon()
    assert set(lost) == set(distances("a", before)) - set(distances("a", after))
    for near, far in lost.values():
        assert near == "a" or near in ways
        assert far in lost
        assert tuple(sorted((near, far))) in before - after


def test_a_link_counts_when_both_its_ends_know_of_it() -> None:
    known = Topology("a")
    known.direct = {"b"}
    known.take("b", LinkState(1, frozenset({"a", "c"}), "b", ""))
    known.take("c", LinkState(1, frozenset(), "c", ""))
    assert known.ways() == {"b": Way(1, "b", "a")}
    known.take("c", LinkState(2, frozenset({"b"}), "c", ""))
    assert known.ways()["c"] == Way(2, "b", "b")


def test_what_is_said_of_us_is_not_believed() -> None:
    known = Topology("a")
    assert not known.take("a", LinkState(9, frozenset({"b"}), "a", ""))
    assert known.ways() == {}


def test_what_is_known_already_is_no_news() -> None:
    """What is passed on as news comes back over every other link: of the same version it must go no further."""
    known = Topology("a")
    known.direct = {"b"}
    said = LinkState(7, frozenset("ac"), "b", "")
    assert known.take("b", said)
    assert not known.take("b", said)
    assert not known.take("b", said._replace(peers=frozenset("a"))), "the first of a version holds"
    assert not known.take("b", said._replace(version=6))
    assert known.states["b"] == said
    assert known.take("b", said._replace(version=8))


def test_names_that_somebody_makes_up_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "MOST_SERVERS", 2)
    known = Topology("a")
    known.direct.add("b")
    assert known.take("b", LinkState(1, frozenset("ac"), "b", ""))
    assert known.take("c", LinkState(1, frozenset("b"), "c", ""))
    assert known.reckon().ways.keys() == {"b", "c"}
    assert not known.take("d", LinkState(1, frozenset(), "d", ""))
    assert known.take("b", LinkState(2, frozenset(), "b", ""))
    assert set(known.states) == {"b", "c"}
