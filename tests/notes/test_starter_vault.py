import json
from pathlib import Path

import pytest
import yaml

from gateway.notes.drafts import DRAFT_PROPERTIES
from gateway.notes.fields import read_fields
from gateway.notes.links import links_in
from gateway.notes.namespace import STARTER_FOLDERS, locate
from gateway.notes.note import parse
from gateway.notes.paths import check_vault_path
from gateway.notes.template import PROPERTY_ORDER

ROOT = Path(__file__).parents[2]
VAULT = ROOT / "vault"
TEMPLATES = ROOT / "templates"
NOTES = sorted([*VAULT.rglob("*.md"), *TEMPLATES.rglob("*.md")])


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_note_that_ships_is_in_good_order(path: Path):
    note = parse(path.read_bytes())
    assert note.readiness == "ready"
    assert note.problems == ()
    problems = [problem for problem in read_fields(note)[1] if "{{" not in str(note.properties[problem.field or ""])]
    assert problems == []
    assert b"\r" not in path.read_bytes()


def test_nothing_in_a_new_vault_is_taken_for_a_memory():
    assert not [path for path in VAULT.rglob("*.md") if locate(path.relative_to(VAULT).as_posix(), owner="owner")]


def test_every_template_of_a_user_file_has_its_place():
    places = {path.name: locate(f"Users/tom/{path.name}", owner="") for path in TEMPLATES.glob("*.md")}
    assert [name for name, place in places.items() if place is None] == ["AGENTS.md"]
    assert all(place.resident for place in places.values() if place)


def test_the_rules_for_agents_come_from_the_templates():
    assert (VAULT / "AGENTS.md").read_bytes() == (TEMPLATES / "AGENTS.md").read_bytes()


def test_every_property_has_one_type_in_obsidian():
    types = json.loads((VAULT / ".obsidian/types.json").read_text(encoding="utf-8"))["types"]
    used = {name for path in NOTES for name in parse(path.read_bytes()).properties}
    assert set(PROPERTY_ORDER) | used <= set(types)


INSERTED = {"{{title}}": 'Tea at "four": a [[note]]'.replace('"', "'"), "{{date:YYYY-MM-DD}}": "2026-11-30"}


@pytest.mark.parametrize("path", sorted((VAULT / "Templates").glob("*.md")), ids=lambda path: path.stem)
def test_a_template_is_a_good_memory_once_it_is_inserted(path: Path):
    text = path.read_text(encoding="utf-8")
    for variable, value in (INSERTED | {"{{time:HH:mm:ss}}": "10:00:00"}).items():
        text = text.replace(variable, value)
    assert "{{" not in text
    note = parse(text.encode("utf-8"))
    fields, problems = read_fields(note)
    assert (note.readiness, note.problems, problems) == ("ready", (), ())
    assert fields.summary == INSERTED["{{title}}"]
    assert fields.created is not None
    assert fields.type


def test_there_is_a_template_for_every_kind_of_note():
    names = {path.stem for path in (VAULT / "Templates").glob("*.md")}
    assert names == {
        *("Memory", "Preference", "Decision", "Experience", "Directive", "Profile", "Preferences", "Workspace memory"),
    }


def test_the_home_note_fits_on_a_screen_and_says_how_to_decide():
    home = (VAULT / "Home.md").read_text(encoding="utf-8")
    assert len(home.splitlines()) < 70
    for words in ("`Reviews/Queue`", "`decision`", "`accept`", "`reject`", "`Reviews/Accepted`", "`Reviews/Rejected`"):
        assert words in home
    assert "`target_namespace`" in home
    assert "`secrets`" in home


def test_the_properties_of_a_draft_have_types():
    types = json.loads((VAULT / ".obsidian/types.json").read_text(encoding="utf-8"))["types"]
    assert set(DRAFT_PROPERTIES) <= set(types)
    assert (types["decided"], types["evidence"], types["secrets"]) == ("datetime", "multitext", "text")


def test_the_settings_and_views_can_be_read():
    for path in (VAULT / ".obsidian").glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))
    assert json.loads((VAULT / ".obsidian/templates.json").read_text(encoding="utf-8")) == {"folder": "Templates"}
    for path in VAULT.rglob("*.base"):
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["views"]


def test_the_links_of_the_home_note_lead_somewhere():
    names = {path.name for path in VAULT.rglob("*")} | {
        path.relative_to(VAULT).as_posix() for path in NOTES if path.is_relative_to(VAULT)
    }
    for link in links_in(parse((VAULT / "Home.md").read_bytes()).body):
        assert {link.target, f"{link.target}.md"} & names


def test_the_folders_of_a_new_vault_are_acceptable_paths():
    assert [check_vault_path(folder) for folder in STARTER_FOLDERS] == list(STARTER_FOLDERS)
