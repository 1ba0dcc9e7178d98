import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import BadPath, Invalid
from gateway.notes.namespace import (
    Namespace,
    archive_path,
    folder_of,
    locate,
    note_path,
    parse_namespace,
    parse_uri,
    uri_of,
)
from gateway.notes.paths import check_id, check_vault_path, conflict_copy_of, is_ignored, path_key

ROOMS = {
    "user": [
        "profile",
        "preferences",
        "long_term",
        "directives",
        "user_memory",
        "work_memory",
        "soul",
        "user_file",
        "memory_file",
    ],
    "agent": ["memory", "experience"],
    "workspace": ["shared"],
}


def accepted(value: str) -> bool:
    try:
        return bool(check_id(value, "id"))
    except Invalid:
        return False


IDS = st.one_of(
    st.sampled_from(["tom", "Łukasz", "田中", "a.b@c-d", "_x", "हिन्दी"]),
    st.text(st.characters(categories=["L", "M", "N"], include_characters="_.-@"), min_size=1, max_size=64).filter(
        accepted
    ),
)
NAMESPACES = st.one_of(
    *(
        st.builds(Namespace, st.just(kind), IDS, st.sampled_from(rooms))  # type: ignore[arg-type]
        for kind, rooms in ROOMS.items()
    ),
    st.just(Namespace("global", "", "public")),
)
NAMES = st.text(min_size=1, max_size=40).map(lambda name: f"{name}.md")


@given(NAMESPACES, NAMES, IDS | st.just(""))
def test_a_note_path_is_located_in_its_namespace(namespace: Namespace, name: str, owner: str):
    try:
        path = note_path(namespace, name, owner=owner)
    except BadPath:
        assume(False)
        raise
    assume(not is_ignored(path) and unicodedata.normalize("NFC", path) == path)
    place = locate(path, owner=owner)
    assert place is not None
    assert place.namespace == namespace
    assert not place.archived
    assert place.canonical
    assert place.path == path


@given(NAMESPACES, NAMES, IDS | st.just(""))
def test_an_archived_note_still_belongs_to_its_namespace(namespace: Namespace, name: str, owner: str):
    try:
        path = archive_path(note_path(namespace, name, owner=owner))
    except BadPath:
        assume(False)
        raise
    assume(not is_ignored(path))
    place = locate(path, owner=owner)
    assert place is not None
    assert place.archived
    assert not place.canonical
    assert place.namespace == namespace


@given(NAMESPACES | st.builds(Namespace, st.just("session"), IDS, st.just("episodic")), IDS)
def test_namespace_and_uri_go_both_ways(namespace: Namespace, memory_id: str):
    assert parse_namespace(str(namespace)) == namespace
    uri = uri_of(namespace, memory_id)
    assert uri.isascii()
    assert parse_uri(uri) == (namespace, memory_id)


@given(st.text(max_size=60), IDS)
def test_any_path_is_located_or_is_none(path: str, owner: str):
    for text in (path, f"Users/{path}.md", f"Memories/Archived/{path}.md", f"Global/{path}.md"):
        place = locate(text, owner=owner)
        assert place is None or parse_namespace(str(place.namespace)) == place.namespace


@pytest.mark.parametrize(
    ("path", "namespace", "resident", "archived", "canonical"),
    [
        ("Users/ann/Profile.md", "user/ann/profile", True, False, True),
        ("Users/ann/SOUL.md", "user/ann/soul", True, False, True),
        ("Users/ann/USER.md", "user/ann/user_file", True, False, True),
        ("Users/ann/MEMORY.md", "user/ann/memory_file", True, False, True),
        ("Users/ann/LongTerm/a/b.md", "user/ann/long_term", False, False, True),
        ("Users/tom/LongTerm/x.md", "user/tom/long_term", False, False, False),
        ("Users/ann/Directives/x.md", "user/ann/directives", False, False, True),
        ("Agents/bot/Experience.md", "agent/bot/experience", False, False, True),
        ("Agents/bot/Memory/2026/x.md", "agent/bot/memory", False, False, True),
        ("Workspaces/w/Shared.md", "workspace/w/shared", False, False, False),
        ("Workspaces/w/Shared/x.md", "workspace/w/shared", False, False, True),
        ("Global/x.md", "global/public", False, False, True),
        ("Memories/LongTerm/x.md", "user/tom/long_term", False, False, True),
        ("Memories/Archived/x.md", "user/tom/long_term", False, True, False),
        ("Memories/Archived/Agents/bot/Memory/x.md", "agent/bot/memory", False, True, False),
    ],
)
def test_each_folder_of_the_vault_has_its_namespace(
    path: str, namespace: str, resident: bool, archived: bool, canonical: bool
):
    place = locate(path, owner="tom")
    assert place is not None
    assert str(place.namespace) == namespace
    assert (place.resident, place.archived, place.canonical) == (resident, archived, canonical)


@pytest.mark.parametrize(
    "path",
    [
        "Home.md",
        "AGENTS.md",
        "Templates/Memory.md",
        "Reviews/Queue/x.md",
        "Profiles/x.md",
        "Users/x.md",
        "Users/ann/Other.md",
        "Users/ann/LongTerm",
        "Users/-x/LongTerm/a.md",
        "Users/ann/LongTerm/x.excalidraw.md",
        "Users/ann/LongTerm/x.txt",
        "Users/ann/LongTerm/.hidden.md",
        "Users/ann/../bob/LongTerm/x.md",
        "users/ann/LongTerm/x.md",
    ],
)
def test_other_files_are_no_memories(path: str):
    assert locate(path, owner="tom") is None


def test_without_an_owner_the_one_person_folder_belongs_to_nobody():
    assert locate("Memories/LongTerm/x.md", owner="") is None
    assert locate("Memories/Archived/x.md", owner="") is None
    assert folder_of(Namespace("user", "tom", "long_term"), owner="") == "Users/tom/LongTerm"
    assert folder_of(Namespace("user", "tom", "long_term"), owner="tom") == "Memories/LongTerm"


def test_a_decomposed_path_belongs_to_the_composed_id():
    place = locate(unicodedata.normalize("NFD", "Users/józef/LongTerm/é.md"), owner="")
    assert place is not None
    assert place.namespace.owner == "józef"
    assert not place.canonical


def test_episodes_have_no_place_in_the_vault():
    with pytest.raises(BadPath):
        folder_of(Namespace("session", "s1", "episodic"), owner="")


@pytest.mark.parametrize(
    "text", ["", "user", "user/tom", "user/tom/other", "global", "global/x", "user//profile", "x/y/z"]
)
def test_an_unknown_namespace_is_refused(text: str):
    with pytest.raises(Invalid):
        parse_namespace(text)
    with pytest.raises(Invalid):
        parse_uri(f"viking://memory/{text}/mem_a")


def test_visibility_and_identity_follow_from_the_namespace():
    user, agent = Namespace("user", "t", "profile"), Namespace("agent", "a", "memory")
    space, everyone = Namespace("workspace", "w", "shared"), Namespace("global", "", "public")
    assert [item.default_visibility for item in (user, agent, space, everyone)] == [
        "private",
        "agent-only",
        "workspace-shared",
        "global",
    ]
    assert (user.user_id, agent.agent_id, space.workspace_id, everyone.user_id) == ("t", "a", "w", None)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x" * 65,
        ".a",
        "-a",
        "a.",
        "a/b",
        "a b",
        "CON",
        "com1.x",
        "e\u0301",
        "a\0",
        "a\u202eb",
        "田" * 67,
        "a:b",
        "\ud800",
    ],
)
def test_an_id_that_cannot_be_a_folder_is_refused_with_its_field(value: str):
    with pytest.raises(Invalid) as caught:
        check_id(value, "user_id")
    assert caught.value.field == "user_id"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/a",
        "C:/a",
        "a/../b",
        "..",
        "a\\b",
        "a\0b",
        "a\nb",
        "a//b",
        "a/",
        "CON.md",
        "a/aux/b.md",
        "a./b",
        "a /b",
        "x" * 253 + ".md",
        "a/" * 600 + "b",
        ".git/x",
        "a/.obsidian/b.md",
        "LPT1.tar.md",
        "\ud800.md",
        "a\u2028b.md",
    ],
)
def test_a_path_that_leaves_the_vault_or_cannot_travel_is_refused(path: str):
    with pytest.raises(BadPath):
        check_vault_path(path)


@pytest.mark.parametrize("path", ["a.md", "Users/Zoë/LongTerm/茶 🌲.md", "a..b.md", "console.md", "漢" * 84 + ".md"])
def test_an_ordinary_path_is_accepted(path: str):
    assert check_vault_path(path) == path


def test_paths_are_compared_without_case_and_composition():
    assert path_key("Users/É.md") == path_key("users/e\u0301.MD")
    assert path_key("Straße") == path_key("STRASSE")
    assert path_key("a.md") != path_key("b.md")


@pytest.mark.parametrize(
    "path",
    [
        ".obsidian/app.json",
        ".trash/x.md",
        "a/.git/HEAD",
        "x.tmp",
        "x.md.crswap",
        "~$x.md",
        ".syncthing.x.md.tmp",
        "~syncthing~x.md.tmp",
        ".x.md.icloud",
        ".hidden.md",
        "a/x.md~",
    ],
)
def test_temporary_and_dot_files_are_ignored(path: str):
    assert is_ignored(path)
    assert not is_ignored("Users/tom/LongTerm/Temp files.md")


@pytest.mark.parametrize(
    "name",
    [
        "Note.sync-conflict-20251130-101500-ABC1234.md",
        "Note (conflicted copy).md",
        "Note (Alex's conflicted copy 2025-11-30).md",
        "Note (Conflicted copy Laptop 202511301200).md",
        "Note (Alex’s conflicted copy 2025-11-30 (1)).md",
    ],
)
def test_a_conflict_copy_names_its_original(name: str):
    assert conflict_copy_of(f"a/{name}") == "a/Note.md"


@pytest.mark.parametrize(
    "name",
    [
        "Conflict resolution chapter.md",
        "Note 2.md",
        "Note-DESKTOP-AB12CD.md",
        "On a (conflicted copy) of me.md",
        "sync-conflict notes.md",
        "The (conflict) copy.md",
        "Why (the conflicted copy appears).md",
    ],
)
def test_an_ordinary_name_is_no_conflict_copy(name: str):
    assert conflict_copy_of(name) is None
