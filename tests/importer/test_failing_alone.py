"""A note that nobody foresaw fails alone; the others of its batch come in."""

from gateway.importer import apply as applying
from gateway.ledger import problems, registry


def test_one_failing_note_keeps_no_other_out(opened, monkeypatch):
    gateway = opened()
    folder = gateway.parts.files.root / "Memories/LongTerm"
    for number in range(5):
        (folder / f"n{number}.md").write_text(f"Note {number}.\n", "utf-8")
    right = applying.note_row

    def wrong(note_id, place, parsed, **rest):
        if place.path.endswith("n3.md"):
            raise ZeroDivisionError
        return right(note_id, place, parsed, **rest)

    monkeypatch.setattr(applying, "note_row", wrong)
    gateway.settle()
    with gateway.parts.ledger.read() as tx:
        paths = [path for _, path, _, _ in registry.note_states(tx) if path.startswith("Memories/")]
        listed = [(row.path, row.kind) for row in problems.listed(tx)]
    assert sorted(paths) == [f"Memories/LongTerm/n{number}.md" for number in (0, 1, 2, 4)]
    assert listed == [("Memories/LongTerm/n3.md", "not-imported")]
    monkeypatch.undo()
    gateway.parts.importer.import_paths(["Memories/LongTerm/n3.md"], settled=True)
    with gateway.parts.ledger.read() as tx:
        assert problems.listed(tx) == []
        assert registry.notes_by_path(tx, ["Memories/LongTerm/n3.md"])
