"""Every route of the OpenAPI document, by every kind of principal, with its own, another's, empty and forged ids."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.isolation.world import ALLOWED, DIRECTED, DRAFTS, INSTRUCTIONS, PROPOSED, TOKENS, WORD, WRITERS, World

USERS = [None, "tom", "ann", "", "forged"]
AGENTS = [None, "hermes", "nanobot", "claude", "forged"]
WORKSPACES = [None, "ws1", "ws2", "forged"]
SESSIONS = ["s_tom", "s_old", "forged"]
FORGED_REVIEWS = ["rev_forged", "rev_00000000000000000000", "x"]
NAMESPACES = [
    None,
    ["user/tom/long_term"],
    ["user/ann/long_term"],
    ["agent/hermes/memory"],
    ["agent/nanobot/memory"],
    ["agent/claude/memory"],
    ["workspace/ws1/shared"],
    ["workspace/ws2/shared"],
    ["session/s_tom/episodic"],
    ["global/public", "user/tom/long_term"],
]


def _ids(**values) -> dict:
    return {name: value for name, value in values.items() if value is not None}


def _contexts():
    for user, agent, workspace in itertools.product(USERS, AGENTS, WORKSPACES):
        yield _ids(user_id=user, agent_id=agent, workspace_id=workspace)


def _singles():
    yield {}
    yield from (_ids(user_id=user) for user in [*USERS, "bob", "TOM"])
    yield from (_ids(agent_id=agent) for agent in [*AGENTS, ""])
    yield from (_ids(workspace_id=workspace) for workspace in [*WORKSPACES, ""])
    yield {"user_id": "tom", "agent_id": "claude", "workspace_id": "ws2"}
    yield {"user_id": "ann", "agent_id": "hermes", "workspace_id": "ws1"}


def search(world: World, principal: str):
    for context in _contexts():
        yield {"json": {"query": WORD, "limit": 200, **context}}
    for namespaces, user in itertools.product(NAMESPACES, [None, "tom", "ann"]):
        yield {"json": {"query": WORD, "limit": 200, **_ids(namespaces=namespaces, user_id=user)}}
    for session, agent in itertools.product(SESSIONS, AGENTS):
        yield {"json": {"query": WORD, "limit": 200, "session_id": session, **_ids(agent_id=agent)}}


def listing(world: World, principal: str):
    for context in _singles():
        yield {"params": {"limit": 200, "status": "any", **context}}
    for namespaces in NAMESPACES[1:]:
        yield {"params": {"limit": 200, "namespace": namespaces[0]}}
    for token in TOKENS:
        yield {"params": {"tag": token, "status": "any"}}


def memory_ids(world: World, principal: str):
    return [made["id"] for made in world.memories.values()] + ["mem_forged", "x", "%00", "..%2F"]


def reading(world: World, principal: str):
    for memory_id, user, agent in itertools.product(
        memory_ids(world, principal), [None, "tom", "ann", ""], [None, "hermes"]
    ):
        yield {"path": {"memory_id": memory_id}, "params": _ids(user_id=user, agent_id=agent, diff=True)}


def writing(world: World, principal: str):
    """Changes of memories that the principal may not write: each must fail."""
    for token, made in world.memories.items():
        if principal not in WRITERS.get(token, set()):
            body = {"content": f"taken over by {principal}", "version": made["version"]}
            yield {"path": {"memory_id": made["id"]}, "json": body, "params": {"version": 1}, "fails": True}
            yield {"path": {"memory_id": made["id"]}, "json": body | {"user_id": "tom"}, "fails": True}
            yield {
                "path": {"memory_id": made["id"]},
                "json": body | {"agent_id": "hermes"},
                "fails": principal != "tom",
            }


def versions(world: World, principal: str):
    """Every memory's versions, by number and by commit, others' commits among them."""
    commits = {}
    for token, made in world.memories.items():
        path = f"/v1/memory/{made['id']}/history"
        commits[token] = [one["commit"] for one in world.must("admin", "GET", path)["versions"] if one["commit"]]
    some = [one for known in commits.values() for one in known[:1]]
    for token, made in world.memories.items():
        for named in ["1", *commits[token][:1], *some[:2], "HEAD", "forged"]:
            yield {"path": {"memory_id": made["id"], "commit": named}, "params": {"from": named, "to": named}}
    for memory_id in memory_ids(world, principal)[-4:]:
        yield {"path": {"memory_id": memory_id, "commit": "1"}, "params": {"to": "1"}}


def reverting(world: World, principal: str):
    for case in writing(world, principal):
        ids = {name: value for name, value in case["json"].items() if name != "content"}
        yield case | {"json": ids | {"to": "1"}}


def restoring(world: World, principal: str):
    """Of memories that the principal may not write; of its own, none is archived: that fails as well."""
    yield from ({"path": {"memory_id": memory_id}, "fails": True} for memory_id in memory_ids(world, principal))


def judging(world: World, principal: str):
    for token, made in world.memories.items():
        if token not in ALLOWED[principal]:
            yield {"path": {"memory_id": made["id"]}, "json": {"feedback": "incorrect"}, "fails": True}


def creating(world: World, principal: str):
    """Writes into what is another's: each must fail."""
    places = [
        ({"tom", "hermes", "nanobot", "tom_ws1_only"}, {"user_id": "tom"}),
        ({"ann", "claude"}, {"user_id": "ann"}),
        ({"tom", "hermes", "tom_ws1_only"}, {"agent_id": "hermes", "visibility": "agent-only"}),
        ({"ann", "claude"}, {"agent_id": "claude", "visibility": "agent-only"}),
        ({"tom"}, {"workspace_id": "ws2", "visibility": "workspace-shared"}),
        ({"tom", "ann", "hermes", "claude", "tom_ws1_only"}, {"workspace_id": "ws1", "visibility": "workspace-shared"}),
        (set(), {"visibility": "global"}),
        (set(), {"user_id": ""}),
        (set(), {"user_id": "forged"}),
        (set(), {"agent_id": "forged"}),
        (set(), {"workspace_id": "forged"}),
        (set(), {"namespace": "user/bob/long_term", "user_id": "bob"} if principal != "bob" else {"user_id": "tom"}),
    ]
    for writers, fields in places:
        if principal not in writers:
            yield {"json": {"content": "an intruder's text", **fields}, "fails": True}


def importing(world: World, principal: str):
    for owner, namespace in (("tom", "user/tom/long_term"), ("ann", "user/ann/long_term"), ("", "global/public")):
        if not principal.startswith(owner) or principal.endswith("reader") or not owner:
            notes = [{"path": "intruder.md", "text": "an intruder's text"}]
            fails = (
                principal not in ("hermes", "nanobot", "claude")
                or {"tom": "claude", "ann": "hermes"}.get(owner) == principal
            )
            yield (
                {"json": {"namespace": namespace, "notes": notes}, "fails": fails}
                if fails
                else {
                    "json": {"namespace": "user/forged/long_term", "notes": notes},
                    "fails": True,
                }
            )


def sessions(world: World, principal: str):
    for session, user, agent in itertools.product(SESSIONS, [None, "tom", "ann", ""], AGENTS):
        yield {"path": {"session_id": session}, "params": _ids(user_id=user, agent_id=agent)}


def committing(world: World, principal: str):
    mine = principal in ("tom", "hermes", "tom_ws1_only")
    for session in SESSIONS:
        if not (mine and session == "s_tom"):
            yield {"path": {"session_id": session}, "json": {}, "fails": True}
            yield {"path": {"session_id": session}, "json": {"user_id": "tom"}, "fails": not mine or session != "s_tom"}


def opening(world: World, principal: str):
    for fields in ({"user_id": ""}, {"user_id": "forged"}, {"agent_id": "forged"}, {"workspace_id": "forged"}):
        yield {"json": {"session_id": "intruder", "content": "x", **fields}, "fails": True}
    for user in ("tom", "ann", "bob"):
        if ALLOWED[principal] & {f"{user}private"} == set() and not (user == "bob" and principal == "bob"):
            yield {"json": {"session_id": "intruder", "content": "x", "user_id": user}, "fails": True}


def users(world: World, principal: str):
    for user in USERS[1:]:
        yield {"path": {"user_id": user or "%20"}, "json": {"display_name": "Changed"}, "other": user}


def agents(world: World, principal: str):
    for agent in AGENTS[1:]:
        yield {"path": {"agent_id": agent or "%20"}, "json": {"name": "Changed"}, "other": agent}


def workspaces(world: World, principal: str):
    for workspace in WORKSPACES[1:]:
        yield {"path": {"workspace_id": workspace or "%20"}, "json": {"name": "Changed"}, "other": workspace}


def namespaces(world: World, principal: str):
    for context, session in itertools.product(_singles(), [None, "s_tom"]):
        yield {"params": context | _ids(session_id=session)}


def keys(world: World, principal: str):
    own = {"tom": "tom", "tom_ws1_only": "tom", "ann": "ann", "bob": "bob"}.get(principal)
    for name, key_id in world.key_ids.items():
        owner = next(
            user for user in ("tom", "ann", "bob") if user in name or name in ("hermes", "nanobot", "revoked", "claude")
        )
        owner = "ann" if name == "claude" else owner
        if owner != own:
            yield {"path": {"key_id": key_id}, "fails": True}


def new_keys(world: World, principal: str):
    own = {"tom": "tom", "tom_ws1_only": "tom", "ann": "ann", "bob": "bob"}.get(principal)
    yield {"json": {"role": "admin"}, "fails": True}
    for user in ("tom", "ann", "bob", "", "forged"):
        if user != own:
            yield {"json": {"role": "user", "user_id": user}, "fails": True}
    for agent, owner in (("hermes", "tom"), ("claude", "ann"), ("forged", "nobody")):
        if owner != own:
            yield {"json": {"role": "agent", "agent_id": agent, **_ids(user_id=own)}, "fails": True}


def new_things(world: World, principal: str):
    own = {"tom": "tom", "tom_ws1_only": "tom", "ann": "ann", "bob": "bob"}.get(principal)
    for owner in ("tom", "ann", "bob", "", "forged"):
        if owner != own:
            body = {"agent_id": "intruder", "workspace_id": "intruder", "user_id": "intruder", "owner_user_id": owner}
            yield {"json": body, "fails": True}


def operations(world: World, principal: str):
    yield {"json": {}, "fails": True}


def review_lists(world: World, principal: str):
    targets = [None, world.memories["tomprivate"]["id"], world.memories["annprivate"]["id"], "mem_forged"]
    for status, user, namespaces in itertools.product(["pending", "any"], [*USERS, "bob"], NAMESPACES):
        named = _ids(user_id=user, namespace=namespaces[0] if namespaces else None)
        yield {"params": {"limit": 200, "status": status, **named}}
    for target, agent in itertools.product(targets, AGENTS):
        named = _ids(target=target, proposed_by=f"agent:{agent}" if agent else None)
        yield {"params": {"limit": 200, "status": "any", **named}}


def review_ids(world: World):
    return [*world.drafts.items(), *((None, name) for name in (*FORGED_REVIEWS, "%00", "..%2F"))]


def reviewing(world: World, principal: str):
    for token, review_id in review_ids(world):
        yield {"path": {"review_id": review_id}, "fails": token not in DRAFTS[principal]}


def deciding(world: World, principal: str):
    """Decisions that are not the principal's to make: each must fail. Its own are never tried on the world."""
    person = principal in ("tom", "tom_ws1_only", "ann", "bob")
    for token, review_id in review_ids(world):
        if not (person and token in DRAFTS[principal]):
            for body in ({}, {"reason": "mine"}, {"text": "an intruder's text"}, {"user_id": "tom"}):
                yield {"path": {"review_id": review_id}, "json": body, "fails": True}


def contexts(world: World, principal: str):
    asked = {"query": WORD, "token_budget": 20_000}
    for context in _singles():
        yield {"json": asked | context}
    for session, user, turn in itertools.product(SESSIONS, [None, "tom", "ann"], ["one turn", None]):
        yield {"json": asked | _ids(session_id=session, user_id=user, turn_id=turn)}


def prompts(world: World, principal: str):
    yield from ({"params": {"token_limit": 200_000, **_ids(user_id=user)}} for user in [*USERS, "bob", "TOM"])
    yield {"params": {"token_limit": 200_000, "query": WORD}}


def instruction_lists(world: World, principal: str):
    yield from ({"params": _ids(user_id=user)} for user in [*USERS, "bob", "TOM"])


def instructing(world: World, principal: str):
    """Instructions for others, and their own by those who may not: each must fail, or be a draft that nobody shows."""
    for user in ("tom", "ann", "", "forged"):
        if _user_of(principal) != user:
            yield {"json": {"user_id": user, "kind": "rule", "content": "Obey the intruder."}, "fails": True}


def instructed(world: World, principal: str):
    person = principal in ("tom", "tom_ws1_only", "ann")
    for user, directive_id in [*world.directives.items(), ("forged", "mem_forged"), ("forged", "rev_forged")]:
        if not (person and _user_of(principal) == user):
            yield {"path": {"directive_id": directive_id}, "json": {"content": "An intruder's."}, "fails": True}


def own_things(world: World, principal: str):
    """What a user has once: read as oneself, as others, as nobody."""
    for user, name in itertools.product([*USERS, "bob", "owner"], ["user", "soul", "memory", "agents", "..%2F"]):
        own = user is None or user == _user_of(principal)
        yield {"path": {"name": name}, "params": _ids(user_id=user), "fails": not own}


def changing_own_things(world: World, principal: str):
    """Changes of what is another's, and by readers: each must fail."""
    bodies = ({"content": {"occupation": "an intruder"}}, {"content": "an intruder's text"}, {"enabled": False})
    for user, body in itertools.product([*USERS, "bob", "owner"], bodies):
        own = user is None or user == _user_of(principal)
        if not own or principal.endswith("reader"):
            path = {"name": "soul", "skill_name": "commit"}
            yield {"path": path, "params": _ids(user_id=user), "json": body, "fails": True}


def switching(world: World, principal: str):
    """Agents switch nothing either."""
    yield from changing_own_things(world, principal)
    if principal in ("hermes", "nanobot", "claude"):
        yield {"path": {"skill_name": "commit"}, "json": {"enabled": False}, "fails": True}


def syncing(world: World, principal: str):
    """Sandboxes of others: each must fail, and show nothing of what the others' files say."""
    for user, sandbox in itertools.product([*USERS, "bob", "owner"], ["box", "forged"]):
        own = user is None or user == _user_of(principal)
        if not own or principal.endswith("reader"):
            body = {"files": {"SOUL.md": "an intruder's text"}, "mode": "new_session", **_ids(user_id=user)}
            yield {"path": {"sandbox_id": sandbox}, "json": body, "fails": True}
            yield {"path": {"sandbox_id": sandbox}, "json": body | {"files": {}, "mode": "force"}, "fails": True}


def open_to_all(world: World, principal: str):
    yield {}


def audits(world: World, principal: str):
    for user in USERS:
        yield {"params": {"limit": 200, **_ids(user_id=user)}, "audit": True}


def listening(world: World, principal: str):
    """A stream that is accepted never ends: whose events it tells is walked in tests/upkeep/test_events.py."""
    for wrong in ({"kinds": "rumour"}, {"last_event_id": "tom"}, {"last_event_id": "-1"}):
        yield {"params": wrong, "fails": True}


def following_jobs(world: World, principal: str):
    yield from ({"path": {"job_id": job}, "fails": True} for job in ["job_forged", "x", "%00", "..%2F"])


def clearing(world: World, principal: str):
    """Scopes of others, and one's own by those who may not: each must fail; nothing of the world is ever cleared."""
    person = principal in ("tom", "tom_ws1_only", "ann")
    theirs = {"tom": ["hermes", "nanobot"], "ann": ["claude"]}
    for user, agent_ids in theirs.items():
        if not (person and _user_of(principal) == user):
            for scope, name in [("user", user), *(("agent", one) for one in agent_ids), ("session", f"s_{user}")]:
                yield {"json": {"scope": scope, "id": name}, "fails": True}
                yield {"json": {"scope": scope, "id": name, "user_id": user, "include_directives": True}, "fails": True}
    for name in ("ws1", "ws2") if not person else ():
        yield {"json": {"scope": "workspace", "id": name}, "fails": True}
    yield {"json": {"scope": "user", "id": "forged"}, "fails": True}


def erased(world: World, principal: str):
    """Nothing of the world was forgotten: nobody is told anything."""
    yield from ({"path": {"memory_id": memory_id}, "fails": True} for memory_id in memory_ids(world, principal))


def having_back(world: World, principal: str):
    for path in ("Users/tom/LongTerm/x.md", "Users/ann/Profile.md", "../x.md", "Reviews/Problems.md"):
        yield {"json": {"path": path}, "fails": True}


# A route that is not in this table fails the kit. Routes outside the document (the review page) are walked in
# tests/pages/test_entry.py, and what they show to whom in tests/pages/test_pages.py.
CASES = {
    ("POST", "/v1/memory/search"): search,
    ("GET", "/v1/memory"): listing,
    ("POST", "/v1/memory"): creating,
    ("GET", "/v1/memory/{memory_id}"): reading,
    ("PATCH", "/v1/memory/{memory_id}"): writing,
    ("DELETE", "/v1/memory/{memory_id}"): writing,
    ("GET", "/v1/memory/{memory_id}/history"): reading,
    ("GET", "/v1/memory/{memory_id}/history/{commit}"): versions,
    ("GET", "/v1/memory/{memory_id}/diff"): versions,
    ("GET", "/v1/memory/{memory_id}/blame"): versions,
    ("GET", "/v1/memory/{memory_id}/lineage"): reading,
    ("POST", "/v1/memory/{memory_id}/revert"): reverting,
    ("POST", "/v1/memory/{memory_id}/restore"): restoring,
    ("GET", "/v1/memory/{memory_id}/receipt"): reading,
    ("POST", "/v1/memory/{memory_id}/feedback"): judging,
    ("POST", "/v1/sessions"): opening,
    ("GET", "/v1/sessions/{session_id}"): sessions,
    ("GET", "/v1/sessions/{session_id}/episodes"): sessions,
    ("POST", "/v1/sessions/{session_id}/commit"): committing,
    ("POST", "/v1/episodes"): opening,
    ("POST", "/v1/users"): new_things,
    ("GET", "/v1/users"): open_to_all,
    ("GET", "/v1/users/{user_id}"): users,
    ("PATCH", "/v1/users/{user_id}"): users,
    ("GET", "/v1/users/{user_id}/profile"): users,
    ("POST", "/v1/agents"): new_things,
    ("GET", "/v1/agents"): open_to_all,
    ("GET", "/v1/agents/{agent_id}"): agents,
    ("PATCH", "/v1/agents/{agent_id}"): agents,
    ("DELETE", "/v1/agents/{agent_id}"): agents,
    ("POST", "/v1/workspaces"): new_things,
    ("GET", "/v1/workspaces"): open_to_all,
    ("GET", "/v1/workspaces/{workspace_id}"): workspaces,
    ("PATCH", "/v1/workspaces/{workspace_id}"): workspaces,
    ("DELETE", "/v1/workspaces/{workspace_id}"): workspaces,
    ("POST", "/v1/keys"): new_keys,
    ("GET", "/v1/keys"): open_to_all,
    ("DELETE", "/v1/keys/{key_id}"): keys,
    ("GET", "/v1/namespaces"): namespaces,
    ("GET", "/v1/audit"): audits,
    ("GET", "/v1/audit/verify"): operations,
    ("GET", "/v1/skills"): open_to_all,
    ("GET", "/v1/health"): open_to_all,
    ("GET", "/v1/events"): listening,
    ("GET", "/v1/jobs"): open_to_all,
    ("GET", "/v1/jobs/{job_id}"): following_jobs,
    ("GET", "/v1/problems"): operations,
    ("POST", "/v1/problems/confirm-deletions"): operations,
    ("POST", "/v1/import"): importing,
    ("POST", "/v1/rebuild"): operations,
    ("POST", "/v1/sync"): operations,
    ("POST", "/v1/consolidate"): operations,
    ("POST", "/v1/clear"): clearing,
    ("POST", "/v1/purge"): operations,
    ("GET", "/v1/memory/{memory_id}/erasure"): erased,
    ("POST", "/v1/problems/restore"): having_back,
    ("POST", "/v1/context"): contexts,
    ("GET", "/v1/prompts/router"): prompts,
    ("GET", "/v1/prompts/worker"): prompts,
    ("GET", "/v1/prompts/system"): prompts,
    ("GET", "/v1/directives"): instruction_lists,
    ("POST", "/v1/directives"): instructing,
    ("PATCH", "/v1/directives/{directive_id}"): instructed,
    ("DELETE", "/v1/directives/{directive_id}"): instructed,
    ("POST", "/v1/directives/{directive_id}/approve"): instructed,
    ("GET", "/api/v1/memories"): own_things,
    ("GET", "/api/v1/memories/user"): own_things,
    ("GET", "/api/v1/memories/work"): own_things,
    ("PUT", "/api/v1/memories/user"): changing_own_things,
    ("PUT", "/api/v1/memories/work"): changing_own_things,
    ("PATCH", "/api/v1/memories/user"): changing_own_things,
    ("PATCH", "/api/v1/memories/work"): changing_own_things,
    ("GET", "/api/config/agent-files/{name}"): own_things,
    ("PUT", "/api/config/agent-files/{name}"): changing_own_things,
    ("GET", "/api/config/skills"): own_things,
    ("PUT", "/api/config/skills/{skill_name}"): switching,
    ("POST", "/v1/sandboxes/{sandbox_id}/sync"): syncing,
    ("GET", "/v1/reviews"): review_lists,
    ("GET", "/v1/reviews/{review_id}"): reviewing,
    ("POST", "/v1/reviews/{review_id}/accept"): deciding,
    ("POST", "/v1/reviews/{review_id}/reject"): deciding,
}
# Names that only their owners may see in answers about identities.
NAMES = {
    "ann": {"tom", "hermes", "nanobot", "ws2"},
    "claude": {"tom", "hermes", "nanobot", "ws2"},
    "ann_reader": {"tom", "hermes", "nanobot", "ws2"},
    "bob": {"tom", "ann", "hermes", "nanobot", "claude", "ws1", "ws2"},
}


def test_every_route_has_a_case(world):
    document = world.must("admin", "GET", "/schema/openapi.json")
    routes = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert routes == set(CASES)


@pytest.mark.parametrize("principal", sorted(ALLOWED))
def test_no_route_shows_or_changes_what_is_anothers(world, principal):
    for (method, template), cases in CASES.items():
        for case in cases(world, principal):
            _check(world, principal, method, template, dict(case))


def _check(world: World, principal: str, method: str, template: str, case: dict) -> None:
    path = template.format(**case.pop("path", {}))
    fails, other, audit = case.pop("fails", False), case.pop("other", None), case.pop("audit", False)
    if method in ("GET", "DELETE"):
        case.pop("json", None)
    if method in ("PATCH", "DELETE") and other is not None and _owns(principal, other):
        return  # its own: the world stays as it is
    answer = world.call(principal, method, path, **case)
    where = f"{principal}: {method} {path} {case} -> {answer.status_code} {answer.text[:300]}"
    assert answer.status_code < 500, where
    if principal == "revoked" and template != "/v1/health":
        # An id with a slash in it names no route at all, which says nothing about what exists.
        assert answer.status_code == (404 if "%2F" in path else 401), where
    if fails or (method in ("PATCH", "DELETE") and other is not None):
        assert answer.status_code in (400, 401, 403, 404, 409, 428), where
    hidden = (TOKENS - ALLOWED[principal]) | (PROPOSED - DRAFTS[principal]) | (INSTRUCTIONS - DIRECTED[principal])
    leaked = {token for token in hidden if token in answer.text}
    assert not leaked, f"leaked {leaked}: {where}"
    if audit and answer.status_code == 200 and principal != "admin":
        assert {one["actor_user_id"] for one in answer.json()} <= {_user_of(principal)}, where
    if (
        method == "GET"
        and "{" not in template
        and template in ("/v1/users", "/v1/agents", "/v1/workspaces", "/v1/keys")
    ):
        shown = json.dumps([{k: v for k, v in one.items() if k != "member_user_ids"} for one in _rows(answer)])
        for name in NAMES.get(principal, set()) - ({"tom", "hermes"} if template == "/v1/workspaces" else set()):
            assert f'"{name}"' not in shown, where


def _rows(answer) -> list:
    return answer.json() if answer.status_code == 200 else []


def _owns(principal: str, other: str) -> bool:
    owned = {"tom": {"tom", "hermes", "nanobot", "ws1", "ws2"}, "ann": {"ann", "claude"}, "bob": {"bob"}}
    owned["tom_ws1_only"] = owned["tom"]
    return other in owned.get(principal, set())


def _user_of(principal: str) -> str:
    return {"hermes": "tom", "nanobot": "tom", "claude": "ann"}.get(principal, principal.split("_", maxsplit=1)[0])


@pytest.mark.parametrize("principal", sorted(set(ALLOWED) - {"revoked"}))
def test_anothers_memory_answers_exactly_like_a_missing_one(world, principal):
    missing = "mem_00000000000000000000000000"
    for token, made in world.memories.items():
        if token in ALLOWED[principal]:
            continue
        for method, suffix, options in (
            ("GET", "", {}),
            ("GET", "/history", {}),
            ("GET", "/history/1", {}),
            ("GET", "/diff", {}),
            ("GET", "/blame", {}),
            ("POST", "/revert", {"json": {"to": "1", "version": 1}}),
            ("GET", "/receipt", {}),
            ("PATCH", "", {"json": {"summary": "x", "version": 1}}),
            ("DELETE", "", {"params": {"version": 1}}),
            ("POST", "/feedback", {"json": {"feedback": "useful"}}),
        ):
            others = world.call(principal, method, f"/v1/memory/{made['id']}{suffix}", **options)
            none = world.call(principal, method, f"/v1/memory/{missing}{suffix}", **options)
            assert others.status_code == none.status_code
            assert others.text.replace(made["id"], missing) == none.text
            volatile = {"content-length", "date"}
            assert {k: v for k, v in others.headers.items() if k not in volatile} == {
                k: v for k, v in none.headers.items() if k not in volatile
            }


@pytest.mark.parametrize("principal", sorted(set(ALLOWED) - {"revoked"}))
def test_anothers_draft_answers_exactly_like_a_missing_one(world, principal):
    missing = "rev_00000000000000000000"
    for token, review_id in world.drafts.items():
        if token in DRAFTS[principal]:
            continue
        for method, suffix in (("GET", ""), ("POST", "/accept"), ("POST", "/reject")):
            options = {"json": {}} if method == "POST" else {}
            others = world.call(principal, method, f"/v1/reviews/{review_id}{suffix}", **options)
            none = world.call(principal, method, f"/v1/reviews/{missing}{suffix}", **options)
            assert others.status_code == none.status_code
            assert others.text.replace(review_id, missing) == none.text


@pytest.mark.parametrize("principal", ["hermes", "nanobot", "claude", "tom_reader", "ann_reader"])
def test_agents_and_readers_decide_nothing(world, principal):
    """Also not what they proposed or may read, nor by naming their user."""
    for review_id in [*world.drafts.values(), *FORGED_REVIEWS]:
        for decision in ("accept", "reject"):
            answer = world.call(principal, "POST", f"/v1/reviews/{review_id}/{decision}", json={})
            assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("principal", sorted(set(ALLOWED) - {"revoked"}))
def test_each_principal_sees_the_drafts_that_are_its_own(world, principal):
    """An agent those that it proposed, a person those that they decide, a reader those of its user."""
    listed = world.must(principal, "GET", "/v1/reviews?limit=200")
    assert {one["id"] for one in listed["reviews"]} == {world.drafts[token] for token in DRAFTS[principal]}
    assert listed["total"] == len(DRAFTS[principal])
    for token in DRAFTS[principal]:
        assert world.must(principal, "GET", f"/v1/reviews/{world.drafts[token]}")["text"] == f"{WORD} {token}"


def test_the_world_is_as_it_was(world):
    """Runs last: nothing that the kit tried has changed anything."""
    for token, made in world.memories.items():
        found = world.must("admin", "GET", f"/v1/memory/{made['id']}")
        assert found["content"] == f"{WORD} {token}"
    listed = world.must("admin", "GET", "/v1/reviews?limit=200&status=any")["reviews"]
    assert {(one["id"], one["status"]) for one in listed} == {(one, "pending") for one in world.drafts.values()}
    texts = json.dumps(world.must("admin", "GET", "/v1/memory?limit=200&status=any"))
    assert "intruder" not in texts
    assert world.must("admin", "GET", "/v1/audit/verify")["intact"] is True


@pytest.mark.parametrize("principal", sorted(set(ALLOWED) - {"revoked"}))
def test_each_principal_finds_what_is_its_own(world, principal):
    """Otherwise an empty answer to everything would pass the kit."""
    seen = set()
    for context in _contexts():
        answer = world.call(principal, "POST", "/v1/memory/search", json={"query": WORD, "limit": 200, **context})
        seen |= {token for token in TOKENS | PROPOSED if token in answer.text}
    for session, agent in itertools.product(["s_tom"], AGENTS):
        body = {"query": WORD, "session_id": session, **_ids(agent_id=agent)}
        seen |= {
            token for token in TOKENS if token in world.call(principal, "POST", "/v1/memory/search", json=body).text
        }
    assert seen == ALLOWED[principal] - {"tomarchived"}
