"""The decision as a table: every kind of principal, namespace and visibility, read and written."""

from __future__ import annotations

import itertools

import pytest

from gateway.access.principal import Principal
from gateway.access.rules import NOWHERE, OPERATIONS, Resource, decide
from gateway.ledger.agents import Workspace
from gateway.notes.namespace import Namespace

VISIBILITIES = ("private", "agent-only", "workspace-shared", "global")
DEV = Workspace("dev", "Dev", "tom", ["tom", "ann"], ["hermes", "claude"], "active", 0, 0)

PRINCIPALS = {
    "admin": Principal("k", "admin"),
    "tom": Principal("k", "user", "tom"),
    "tom, dev only": Principal("k", "user", "tom", None, ("dev",)),
    "tom, other workspace only": Principal("k", "user", "tom", None, ("other",)),
    "tom as hermes": Principal("k", "user", "tom", "hermes"),
    "hermes": Principal("k", "agent", "tom", "hermes"),
    "nanobot": Principal("k", "agent", "tom", "nanobot"),
    "tom's reader": Principal("k", "reader", "tom"),
    "hermes' reader": Principal("k", "reader", "tom", "hermes"),
    "ann": Principal("k", "user", "ann"),
    "claude": Principal("k", "agent", "ann", "claude"),
    "bob": Principal("k", "user", "bob"),
    "nobody's agent": Principal("k", "agent", None, "hermes"),
}
TOMS = {"tom", "tom, dev only", "tom, other workspace only", "tom as hermes", "hermes", "nanobot", "tom's reader"}
TOMS |= {"hermes' reader"}
HERMES = {"tom as hermes", "hermes", "hermes' reader"}
MEMBERS = {"tom", "tom, dev only", "tom as hermes", "hermes", "tom's reader", "hermes' reader", "ann", "claude"}
READERS = {"tom's reader", "hermes' reader"}
# Which have an agent: these write no fixed notes and no directives.
AGENTS = {"tom as hermes", "hermes", "nanobot", "claude", "nobody's agent"}
EVERYBODY = set(PRINCIPALS) - {"admin"}


def at(kind: str, owner: str, room: str, **facts) -> Resource:
    return Resource(Namespace(kind, owner, room), **facts)


# The seven kinds of namespace: what stands there, and who may read and write it where nothing narrows it.
PLACES = {
    "long-term notes of a user": (at("user", "tom", "long_term", owner_user_id="tom"), TOMS, TOMS - READERS),
    "a fixed note of a user": (at("user", "tom", "profile", owner_user_id="tom"), TOMS, TOMS - READERS - AGENTS),
    "directives of a user": (at("user", "tom", "directives", owner_user_id="tom"), TOMS, TOMS - READERS - AGENTS),
    "an agent's memory": (
        at("agent", "hermes", "memory", owner_user_id="tom", agent_id="hermes"),
        HERMES,
        HERMES - READERS,
    ),
    "a workspace": (at("workspace", "dev", "shared", workspace=DEV), MEMBERS, MEMBERS - READERS),
    "a session": (
        at("session", "s1", "episodic", owner_user_id="tom", agent_id="hermes"),
        TOMS - {"nanobot"},
        TOMS - READERS - {"nanobot"},
    ),
    "global": (at("global", "", "public"), EVERYBODY, set()),
}


def narrowed(place: str, resource: Resource, visibility: str, names: set[str]) -> set[str]:
    """Who is left of those who may enter, where the note itself is for fewer people."""
    if visibility == "private":
        return names & (TOMS if resource.owner_user_id == "tom" else set())
    if visibility == "agent-only":
        owned = resource.owner_user_id == "tom"
        agent = {name for name in names if PRINCIPALS[name].agent_id == resource.agent_id}
        return (agent & TOMS) if owned else set()
    if visibility == "workspace-shared":
        return names if resource.workspace is not None else set()
    return names


CASES = list(itertools.product(PLACES, VISIBILITIES))


@pytest.mark.parametrize(("place", "visibility"), CASES, ids=lambda value: value)
def test_who_reads_and_writes_what(place, visibility):
    """All principals against one place; nobody but those of the table, and always the administrator."""
    bare, readers, writers = PLACES[place]
    resource = Resource(bare.namespace, visibility, bare.owner_user_id, bare.agent_id, bare.workspace)
    for action, names in (("read", readers), ("write", writers)):
        wanted = narrowed(place, resource, visibility, names) | {"admin"}
        allowed = {name for name, who in PRINCIPALS.items() if decide(who, action, resource).allowed}
        assert allowed == wanted, (action, allowed ^ wanted)


@pytest.mark.parametrize("role", ["user", "agent", "reader"])
def test_only_administrators_operate(role):
    decision = decide(Principal("k", role, "tom", "hermes"), "operate", OPERATIONS)
    assert not decision.allowed
    assert decision.role
    assert not decide(Principal("k", role, "tom"), "read", OPERATIONS).allowed
    assert decide(Principal("k", "admin"), "operate", OPERATIONS).allowed


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize("name", sorted(EVERYBODY))
def test_what_does_not_exist_is_decided_like_anothers_memory(name, action):
    """The same refusal, so that the answer says nothing about what exists."""
    who = PRINCIPALS[name]
    anothers = at("user", "somebody", "long_term", visibility="private", owner_user_id="somebody")
    assert decide(who, action, NOWHERE) == decide(who, action, anothers)


def test_a_membership_counts_only_in_a_living_workspace_of_that_name():
    tom = PRINCIPALS["tom"]
    closed = Workspace("dev", "Dev", "tom", ["tom"], [], "disabled", 0, 0)
    other = Workspace("other", "Other", "tom", ["tom"], [], "active", 0, 0)
    for workspace in (None, closed, other):
        assert not decide(tom, "read", at("workspace", "dev", "shared", workspace=workspace)).allowed


def test_equal_names_in_different_registers_are_different():
    """A user, an agent and a workspace called the same are three."""
    twin = Principal("k", "user", "hermes")
    assert not decide(twin, "read", at("agent", "hermes", "memory", owner_user_id="tom", agent_id="hermes")).allowed
    assert not decide(Principal("k", "agent", "tom", "tom2"), "read", at("user", "tom2", "long_term")).allowed
    assert not decide(PRINCIPALS["nobody's agent"], "read", PLACES["an agent's memory"][0]).allowed


def test_a_person_without_an_agent_reaches_the_sessions_of_all_agents_of_theirs():
    session = at("session", "s1", "episodic", owner_user_id="tom", agent_id="nanobot")
    assert decide(PRINCIPALS["tom"], "write", session).allowed
    assert not decide(PRINCIPALS["hermes"], "read", session).allowed
    assert decide(PRINCIPALS["hermes"], "read", at("session", "s1", "episodic", owner_user_id="tom")).allowed
