"""A small world of users, agents, workspaces and sessions; every memory carries a token that tells whose it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import httpx

WORD = "canary"

# Which tokens each principal may ever see, whatever ids it names.
ALLOWED = {
    "tom": {
        "tomprivate",
        "tomarchived",
        "hermesonly",
        "nanobotonly",
        "sharedone",
        "sharedtwo",
        "everybody",
        "tomsession",
    },
    "tom_reader": {
        "tomprivate",
        "tomarchived",
        "hermesonly",
        "nanobotonly",
        "sharedone",
        "sharedtwo",
        "everybody",
        "tomsession",
    },
    "hermes": {"tomprivate", "tomarchived", "hermesonly", "sharedone", "everybody", "tomsession"},
    "nanobot": {"tomprivate", "tomarchived", "nanobotonly", "everybody"},
    "tom_ws1_only": {"tomprivate", "tomarchived", "hermesonly", "nanobotonly", "sharedone", "everybody", "tomsession"},
    "ann": {"annprivate", "claudeonly", "sharedone", "everybody"},
    "claude": {"annprivate", "claudeonly", "sharedone", "everybody"},
    "ann_reader": {"annprivate", "claudeonly", "sharedone", "everybody"},
    "bob": {"everybody"},
    "revoked": set(),
}
TOKENS = set().union(*ALLOWED.values()) | {"sharedbutprivate", "expiredsession"}
# Which principals may write a memory; the kit never lets them try on it, so that the world stays as it is.
WRITERS = {
    "tomprivate": {"tom", "hermes", "nanobot", "tom_ws1_only"},
    "tomarchived": {"tom", "hermes", "nanobot", "tom_ws1_only"},
    "hermesonly": {"tom", "hermes", "tom_ws1_only"},
    "nanobotonly": {"tom", "nanobot", "tom_ws1_only"},
    "annprivate": {"ann", "claude"},
    "claudeonly": {"ann", "claude"},
    "sharedone": {"tom", "hermes", "tom_ws1_only", "ann", "claude"},
    "sharedtwo": {"tom"},
}
# Which drafts each principal may see; deciding them is another matter. Nobody finds a draft by searching.
DRAFTS = {
    "tom": {"tomdraft", "tomchange", "shareddraft"},
    "tom_reader": {"tomdraft", "tomchange", "shareddraft"},
    "tom_ws1_only": {"tomdraft", "tomchange", "shareddraft"},
    "hermes": {"tomdraft", "tomchange", "shareddraft"},
    "nanobot": set(),
    "ann": {"anndraft", "shareddraft"},
    "ann_reader": {"anndraft", "shareddraft"},
    "claude": {"anndraft"},
    "bob": set(),
    "revoked": set(),
}
# The standing instructions that each principal may see.
DIRECTED = {
    name: {"tomdirective"} if name in ("tom", "tom_reader", "tom_ws1_only", "hermes", "nanobot") else set()
    for name in ALLOWED
} | {name: {"anndirective"} for name in ("ann", "ann_reader", "claude")}
PROPOSED = set().union(*DRAFTS.values())
INSTRUCTIONS = set().union(*DIRECTED.values())


@dataclass
class World:
    """The running server, the keys of all principals, and the ids of all memories and drafts by token."""

    url: str
    admin: str
    keys: dict[str, str] = field(default_factory=dict)
    key_ids: dict[str, str] = field(default_factory=dict)
    memories: dict[str, dict] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)
    directives: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    def call(self, principal: str, method: str, path: str, **options) -> httpx.Response:
        key = self.admin if principal == "admin" else self.keys[principal]
        return self.http.request(method, path, headers={"Authorization": f"Bearer {key}"}, **options)

    def must(self, principal: str, method: str, path: str, **options) -> dict:
        answer = self.call(principal, method, path, **options)
        assert answer.status_code < 300, (method, path, answer.text)
        return answer.json()


def build(url: str, admin: str, vault) -> World:
    world = World(url, admin)
    for user_id in ("tom", "ann", "bob"):
        world.must("admin", "POST", "/v1/users", json={"user_id": user_id})
    for agent_id, owner in (("hermes", "tom"), ("nanobot", "tom"), ("claude", "ann")):
        world.must("admin", "POST", "/v1/agents", json={"agent_id": agent_id, "owner_user_id": owner})
    for workspace_id, members, agents in (
        ("ws1", ["tom", "ann"], ["hermes", "claude"]),
        ("ws2", ["tom", "ann"], ["claude"]),
    ):
        body = {
            "workspace_id": workspace_id,
            "owner_user_id": "tom",
            "member_user_ids": members,
            "allowed_agent_ids": agents,
        }
        world.must("admin", "POST", "/v1/workspaces", json=body)
    _keys(world)
    _memories(world, vault)
    _drafts(world)
    for user_id in ("tom", "ann"):
        body = {"kind": "rule", "content": f"Always say {user_id}directive."}
        world.directives[user_id] = world.must(user_id, "POST", "/v1/directives", json=body)["id"]
    for user_id in ("tom", "ann"):
        words = f"{WORD} {user_id}private"
        world.must(user_id, "PUT", "/api/v1/memories/user", json={"content": {"interests": [words]}})
        world.must(user_id, "PUT", "/api/v1/memories/work", json={"content": {"team_members": [{"name": words}]}})
        world.must(user_id, "PUT", "/api/config/agent-files/soul", json={"content": words})
    # Ann's membership of ws2 has ended.
    world.must("tom", "PATCH", "/v1/workspaces/ws2", json={"member_user_ids": ["tom"], "allowed_agent_ids": []})
    return world


def _keys(world: World) -> None:
    wanted = {
        "tom": {"user_id": "tom", "role": "user"},
        "tom_reader": {"user_id": "tom", "role": "reader"},
        "tom_ws1_only": {"user_id": "tom", "role": "user", "workspace_ids": ["ws1"]},
        "hermes": {"user_id": "tom", "role": "agent", "agent_id": "hermes"},
        "nanobot": {"user_id": "tom", "role": "agent", "agent_id": "nanobot"},
        "ann": {"user_id": "ann", "role": "user"},
        "ann_reader": {"user_id": "ann", "role": "reader"},
        "claude": {"user_id": "ann", "role": "agent", "agent_id": "claude"},
        "bob": {"user_id": "bob", "role": "user"},
        "revoked": {"user_id": "tom", "role": "user"},
    }
    for name, body in wanted.items():
        made = world.must("admin", "POST", "/v1/keys", json=body)
        world.keys[name], world.key_ids[name] = made["key"], made["id"]
    world.must("admin", "DELETE", f"/v1/keys/{world.key_ids['revoked']}")


def _memories(world: World, vault) -> None:
    _write(world, "tom", "tomprivate")
    archived = _write(world, "tom", "tomarchived")
    world.must("tom", "PATCH", f"/v1/memory/{archived['id']}?wait=5", json={"status": "archived", "version": 1})
    _write(world, "hermes", "hermesonly", visibility="agent-only")
    _write(world, "nanobot", "nanobotonly", visibility="agent-only")
    _write(world, "ann", "annprivate")
    _write(world, "claude", "claudeonly", visibility="agent-only")
    _write(world, "tom", "sharedone", visibility="workspace-shared", workspace_id="ws1")
    _write(world, "tom", "sharedtwo", visibility="workspace-shared", workspace_id="ws2")
    _write(world, "admin", "everybody", visibility="global", user_id="tom")
    note = vault / "Workspaces/ws1/Shared/private.md"
    note.write_text(f"---\nvisibility: private\n---\n{WORD} sharedbutprivate\n", "utf-8")
    for session_id, seconds, token in (("s_tom", 3600, "tomsession"), ("s_old", 1, "expiredsession")):
        world.must("hermes", "POST", "/v1/sessions", json={"session_id": session_id, "ttl_seconds": seconds})
        world.must("hermes", "POST", "/v1/episodes", json={"session_id": session_id, "content": f"{WORD} {token}"})
    deadline = time.monotonic() + 20
    while world.must("admin", "POST", "/v1/memory/search", json=_shared())["total"] < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    while world.call("hermes", "GET", "/v1/sessions/s_old").status_code != 404:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _drafts(world: World) -> None:
    """What agents inferred, and a change of what a person wrote."""
    guess = {"source": "conversation", "confidence": 0.7}
    for principal, token, fields in (
        ("hermes", "tomdraft", {}),
        ("claude", "anndraft", {}),
        ("hermes", "shareddraft", {"visibility": "workspace-shared", "workspace_id": "ws1"}),
    ):
        made = world.must(principal, "POST", "/v1/memory", json={"content": f"{WORD} {token}"} | guess | fields)
        world.drafts[token] = made["review"]["id"]
    known = world.memories["tomprivate"]
    body = {"content": f"{WORD} tomchange", "version": known["version"]}
    world.drafts["tomchange"] = world.must("hermes", "PATCH", f"/v1/memory/{known['id']}", json=body)["review"]["id"]


def _shared() -> dict:
    return {"query": WORD, "namespaces": ["workspace/ws1/shared"], "workspace_id": "ws1"}


def _write(world: World, principal: str, token: str, **fields) -> dict:
    made = world.must(
        principal, "POST", "/v1/memory?wait=5", json={"content": f"{WORD} {token}", "tags": [token], **fields}
    )
    world.memories[token] = made
    return made
