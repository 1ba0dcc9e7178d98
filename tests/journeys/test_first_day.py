"""The first day with the product: everything the README and the guides promise, against a real server."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.running import Server, eventually, run, serving

OWN = "Memories/LongTerm"
HOSTILE = Path(__file__).resolve().parents[1] / "data" / "hostile-notes"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the day; each test uses words of its own."""
    with serving(tmp_path_factory.mktemp("day") / "data") as running:
        yield running


def write(server: Server, content: str, **fields: object) -> dict:
    """Write a memory and wait until it can be found."""
    answer = server.http.post("/v1/memory", json={"content": content, **fields}, headers={"Prefer": "wait=5"})
    assert answer.status_code == 201, answer.text
    return answer.json()


def by_hand(server: Server, name: str, text: str) -> Path:
    """Make a note as a person does."""
    path = server.vault / OWN / name
    path.write_text(text, "utf-8")
    return path


def test_a_memory_written_over_rest_is_a_note_that_can_be_found(server):
    """An agent writes; the vault has a note; the next search finds it."""
    written = write(server, "Tea is served at four in the pavilion.", summary="Tea time")
    assert written["receipt"]["fts"] == "done"
    assert "Tea is served at four" in (server.vault / written["path"]).read_text("utf-8")
    assert server.texts("pavilion") == ["Tea is served at four in the pavilion."]


def test_a_note_edited_by_hand_is_found_with_its_new_text(server):
    """A person corrects what an agent wrote; the id stays, the version moves on."""
    written = write(server, "The boat is called Albatross.", summary="Boat")
    path = server.vault / written["path"]
    path.write_text(path.read_text("utf-8").replace("Albatross", "Kittiwake"), "utf-8")
    found = eventually(lambda: server.find("Kittiwake"))
    assert [memory["id"] for memory in found] == [written["id"]]
    assert found[0]["version"] == 2
    assert server.texts("Albatross") == []


def test_an_agent_that_has_not_seen_a_persons_edit_cannot_overwrite_it(server):
    """The stale write is refused, with the present etag and a diff; the person's text stays."""
    written = write(server, "The key lies under the flowerpot.", summary="Key")
    path = server.vault / written["path"]
    edited = path.read_text("utf-8").replace("flowerpot", "doormat")
    path.write_text(edited, "utf-8")
    refused = server.http.patch(
        f"/v1/memory/{written['id']}",
        json={"content": "The key is lost."},
        headers={"If-Match": f'"{written["etag"]}"'},
    )
    assert refused.status_code == 409
    assert refused.json()["type"].endswith(":changed-elsewhere")
    assert "doormat" in refused.json()["diff"]
    assert path.read_text("utf-8") == edited


def test_a_new_note_in_the_owners_folder_is_found(server):
    """Write a note, that is all."""
    by_hand(server, "Wren.md", "# Wren\n\nA wren nests in the toolshed. #birds\n")
    memory = eventually(lambda: server.find("toolshed"))[0]
    assert memory["namespace"] == "user/owner/long_term"
    assert memory["tags"] == ["birds"]
    assert (server.vault / OWN / "Wren.md").read_text("utf-8").startswith("# Wren\n")


def test_a_note_renamed_by_hand_keeps_its_id(server):
    """Moving is not deleting."""
    path = by_hand(server, "Attic.md", "The accordion is in the attic.\n")
    before = eventually(lambda: server.find("accordion"))[0]
    path.rename(path.with_name("Loft.md"))
    after = eventually(lambda: [one for one in server.find("accordion") if one["path"].endswith("Loft.md")])[0]
    assert after["id"] == before["id"]


def test_a_note_deleted_by_hand_is_gone(server):
    """What is not in the vault is not remembered."""
    path = by_hand(server, "Passing.md", "A heron stood on the jetty.\n")
    eventually(lambda: server.find("jetty"))
    path.unlink()
    eventually(lambda: not server.find("jetty"))


def test_a_broken_note_is_listed_where_the_person_works_and_left_alone(server):
    """A problem has its file, its line and what to do; mending the note takes it off the list."""
    broken = "---\ntags: [a, b\n---\nThe quince tree bears well.\n"
    path = by_hand(server, "Quince.md", broken)
    listed = server.vault / "Reviews/Problems.md"
    eventually(lambda: "Quince.md" in listed.read_text("utf-8"))
    problem = next(one for one in server.problems() if one["path"].endswith("Quince.md"))
    assert problem["kind"] == "broken-properties"
    assert problem["line"]
    assert path.read_text("utf-8") == broken
    assert server.find("quince") == []
    path.write_text(broken.replace("[a, b", "[a, b]"), "utf-8")
    eventually(lambda: server.find("quince"))
    eventually(lambda: "Quince.md" not in listed.read_text("utf-8"))


def test_the_check_is_clean_beside_the_running_server(server):
    """Vault, ledger and index say the same."""
    by_hand(server, "Late.md", "The ferry is late on Sundays.\n")
    eventually(lambda: server.find("ferry"))
    done = run("check", "--data-dir", server.data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clean" in done.stdout


def test_the_command_line_searches_through_the_running_server(server):
    """The same answer in the terminal."""
    write(server, "The lighthouse keeper plays chess.")
    done = run("search", "--data-dir", server.data, "--mode", "fts", "--json", "lighthouse keeper")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["memory"]["content"] == "The lighthouse keeper plays chess."


def test_a_second_server_on_the_same_data_directory_refuses(server):
    """One process writes; the other says who does, and goes."""
    done = run("serve", "--data-dir", server.data, "--port", "0")
    assert done.returncode == 2
    assert str(server.process.pid) in done.stderr
    assert server.http.get("/v1/health").status_code == 200


def test_a_rebuild_while_the_server_runs_changes_no_answer(server):
    """The index is a copy: made anew, it answers the same."""
    write(server, "The mangle stands in the scullery.")
    before = [memory["id"] for memory in server.find("scullery mangle")]
    done = run("rebuild", "--data-dir", server.data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [memory["id"] for memory in server.find("scullery mangle")] == before


def test_a_folder_of_odd_notes_is_imported_and_the_source_untouched(server, tmp_path):
    """Byte for byte where it can be, a reason where it cannot; the second run changes nothing."""
    source = odd_notes(tmp_path)
    before = fingerprints(source)
    report = tmp_path / "report.jsonl"
    into = ("--namespace", "user/ann/long_term", "--report", report)
    first = run("import", "--data-dir", server.data, *into, source)
    assert first.returncode == 0, first.stdout + first.stderr
    imported, unchanged, skipped = counts(first.stdout)
    assert imported > 20
    assert unchanged == 0
    assert skipped == len(report.read_text("utf-8").splitlines())
    assert fingerprints(source) == before
    for path, digest in fingerprints(server.vault / "Users/ann/LongTerm").items():
        assert before[path] == digest
    again, unchanged, left = counts(run("import", "--data-dir", server.data, *into, source).stdout)
    assert again == 0
    assert unchanged >= imported
    assert unchanged + left == imported + skipped


def test_json_lines_are_imported_once(server, tmp_path):
    """A line is a memory; a wrong line is skipped with its number."""
    server.http.post("/v1/users", json={"user_id": "tom"})
    lines = json_lines(tmp_path)
    before = lines.read_bytes()
    first = run("import", "--data-dir", server.data, lines)
    assert first.returncode == 0, first.stdout + first.stderr
    assert counts(first.stdout) == (2, 0, 2)
    assert "line 3" in first.stdout
    assert lines.read_bytes() == before
    assert counts(run("import", "--data-dir", server.data, lines).stdout) == (0, 2, 2)
    assert eventually(lambda: server.texts("ocarina", user_id="tom")) == ["Tom plays the ocarina."]


def test_imports_without_a_server_do_the_same(tmp_path):
    """The command opens the data directory itself."""
    data, source, lines = tmp_path / "data", odd_notes(tmp_path), json_lines(tmp_path)
    before = fingerprints(source)
    first = run("import", "--data-dir", data, source)
    assert first.returncode == 0, first.stdout + first.stderr
    imported, _, skipped = counts(first.stdout)
    assert imported > 20
    again, unchanged, left = counts(run("import", "--data-dir", data, source).stdout)
    assert again == 0
    assert unchanged + left == imported + skipped
    assert fingerprints(source) == before
    own = lines.read_text("utf-8").replace('"user_id": "tom", ', "")
    lines.write_text(own, "utf-8")
    assert counts(run("import", "--data-dir", data, lines).stdout) == (2, 0, 2)
    assert run("check", "--data-dir", data).returncode == 0


def test_a_backup_of_a_running_server_restores_to_the_same_answers(server, tmp_path):
    """Other directory, same memories, same key list; the index is made anew."""
    for number in range(5):
        write(server, f"Orchard row {number} has medlars.", summary=f"Row {number}")
    server.http.post("/v1/users", json={"user_id": "hermes"})
    archive = tmp_path / "memory.tar.gz"
    assert run("backup", "--data-dir", server.data, archive).returncode == 0
    restored = tmp_path / "elsewhere"
    assert run("restore", "--data-dir", restored, archive).returncode == 0
    assert run("key", "new", "--data-dir", restored).returncode == 0
    with serving(restored) as other:
        expected = ranking(server, "medlars")
        assert len(expected) == 5
        assert eventually(lambda: ranking(other, "medlars") == expected)
        assert other.http.get("/v1/users/hermes").status_code == 200


def test_sigterm_stops_the_server_and_the_next_start_knows_everything(tmp_path):
    """Within ten seconds; nothing that was acknowledged is lost, nor what was edited while it was down."""
    data = tmp_path / "data"
    with serving(data) as first:
        write(first, "The umbrella is in the hall.")
        assert first.stop() < 10
        assert first.process.returncode in (0, -signal.SIGTERM)
    (data / "vault" / OWN / "Meanwhile.md").write_text("A parcel came for the neighbour.\n", "utf-8")
    with serving(data) as second:
        assert second.texts("umbrella") == ["The umbrella is in the hall."]
        assert eventually(lambda: second.texts("parcel")) == ["A parcel came for the neighbour."]


def odd_notes(folder: Path) -> Path:
    """A folder of notes that people's vaults really hold, good and broken."""
    source = folder / "old vault"
    shutil.copytree(HOSTILE, source)
    (source / "Unter ordner").mkdir()
    (source / "Unter ordner" / "雨.md").write_text("雨の日は本を読む。\n", "utf-8")
    (source / ".obsidian").mkdir()
    (source / ".obsidian" / "app.json").write_text("{}", "utf-8")
    return source


def json_lines(folder: Path) -> Path:
    """Two memories, one line that is no JSON, one without content."""
    lines = folder / "memories.jsonl"
    lines.write_text(
        '{"user_id": "tom", "content": "Tom plays the ocarina.", "tags": ["music"]}\n'
        '{"user_id": "tom", "text": "Tom sings alto."}\n'
        "{not json\n"
        '{"user_id": "tom", "summary": "nothing"}\n',
        "utf-8",
    )
    return lines


def fingerprints(folder: Path) -> dict[str, str]:
    """Path → hash of every file below a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def counts(output: str) -> tuple[int, int, int]:
    """Imported, unchanged, skipped, as the command says."""
    words = output.splitlines()[0].replace(",", "").split()
    return int(words[1]), int(words[3]), int(words[5])


def ranking(server: Server, query: str) -> list[tuple[str, float]]:
    """Ids and scores of a search."""
    results = server.http.post("/v1/memory/search", json={"query": query}).json()["results"]
    return sorted((one["memory"]["id"], round(one["score"], 4)) for one in results)
