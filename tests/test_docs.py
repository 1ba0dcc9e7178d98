"""The documents say what the code says: nothing undescribed, no dead link, and the README's commands work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gateway import errors
from gateway.api.app import create_app
from gateway.bootstrap import open_gateway
from gateway.cli import cli
from gateway.config import load_settings, setting_names
from tests.journeys.running import serving

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "tests" / "bench").glob("*.md")),
]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    """The text of a document."""
    return (ROOT / name).read_text("utf-8")


def headings(text: str) -> list[str]:
    """The headings of a document, code blocks left out."""
    return re.findall(r"^#+ (.+?)\s*$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def test_every_setting_has_a_heading():
    """A setting without a description is one that nobody finds."""
    described = set(headings(read("docs/configuration.md")))
    assert [name for name in setting_names() if name not in described] == []


def test_no_setting_is_described_that_is_not_there():
    """Documentation of what was taken away misleads."""
    groups = {name.split(".")[0] for name in setting_names() if "." in name}
    known = {*setting_names(), *groups, "Configuration", "General"}
    assert [name for name in headings(read("docs/configuration.md")) if name not in known] == []


def test_every_environment_variable_and_default_in_the_configuration_is_right(tmp_path, monkeypatch):
    """Each example of an environment variable is accepted."""
    for variable in re.findall(r"`(MEMORY_GATEWAY_[A-Z_]+)=", read("docs/configuration.md")):
        name = variable.removeprefix("MEMORY_GATEWAY_").lower().replace("__", ".")
        assert name in setting_names()
    (example,) = re.findall(r"^```toml\n(.*?)^```", read("docs/configuration.md"), re.MULTILINE | re.DOTALL)
    (tmp_path / "gateway.toml").write_text(example, "utf-8")
    assert load_settings(data_dir=tmp_path).vault.owner == "tom"


def commands(group: click.Command, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands with their names, subcommands too."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):  # the commands are imported when they are asked for
            command = group.get_command(context, name)
            yield f"{prefix}{name}", command
            yield from commands(command, f"{prefix}{name} ")


COMMANDS = list(commands(cli))


def test_there_are_commands_to_describe():
    """An empty list would pass every test below."""
    assert len(COMMANDS) > 12


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=lambda value: value if value else None)
def test_every_command_and_option_is_described(name, command):
    """Each command has a heading, and its section names each option and argument."""
    text = read("docs/cli.md")
    assert name in headings(text)
    section = re.split(r"^#+ ", text.split(f"# {name}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            assert parameter.name.upper() in section
        else:
            assert [option for option in parameter.opts if option not in section and option != "-h"] == []


def test_every_route_is_described(tmp_path):
    """Each method and path of the OpenAPI document has a heading in the API guide."""
    gateway = open_gateway(load_settings(data_dir=tmp_path / "data", embedding={"provider": "none"}))
    try:
        paths = create_app(gateway).openapi_schema.to_schema()["paths"]
    finally:
        gateway.close()
    described = set(headings(read("docs/api.md")))
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert sorted(routes - described) == []
    verbs = ("GET ", "POST ", "PATCH ", "PUT ", "DELETE ")
    assert sorted({one for one in described if one.startswith(verbs)} - routes - {"GET /metrics"}) == []


def test_every_error_code_is_described():
    """Whoever meets an error finds it in the table."""
    codes = {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.GatewayError)
    }
    text = read("docs/api.md").split("## Errors", 1)[1]
    assert sorted(code for code in codes if f"| `{code}` |" not in text) == []


def test_every_dependency_has_a_line():
    """What it saves, who keeps it, its weight."""
    wanted = tomllib.loads(read("pyproject.toml"))["project"]["dependencies"]
    names = {re.match(r"[A-Za-z0-9._-]+", one).group().lower() for one in wanted}
    assert set(re.findall(r"^\| `([^`]+)` \|", read("docs/dependencies.md"), re.MULTILINE)) == names


def test_every_kind_of_problem_is_described():
    """A person who reads a problem finds how to mend it."""
    kinds: set[str] = set()
    for path in [*(ROOT / "gateway" / "notes").glob("*.py"), *(ROOT / "gateway" / "importer").glob("*.py")]:
        source = path.read_text("utf-8")
        kinds |= set(re.findall(r'NoteProblem\(\s*"([a-z-]+)"', source))
        kinds |= set(re.findall(r'(?:kind\s*=\s*|"kind", )"([a-z]+-[a-z-]+)"', source))
        kinds |= set(re.findall(r'^[A-Z_]+ = "(too-[a-z-]+)"', source, re.MULTILINE))
        kinds |= set(re.findall(r'"(broken-properties|duplicate-key)"', source))
    assert len(kinds) > 15
    guide = read("docs/vault-guide.md").split("## Problems", 1)[1]
    assert sorted(kind for kind in kinds if f"`{kind}`" not in guide) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_resolve(document):
    """Files exist, and so do the headings that links point at."""
    for target in _LINK.findall(_CODE.sub("", document.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, fragment = target.partition("#")
        path = (document.parent / file).resolve() if file else document
        assert path.exists(), target
        if fragment:
            assert fragment in {anchor(one) for one in headings(path.read_text("utf-8"))}, target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_of_the_code_that_documents_name_exist(document):
    """A table of files that are gone sends people astray."""
    named = re.findall(r"`((?:gateway|tests|docs)/[\w/.-]+\.(?:py|md))`", document.read_text("utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_document_leaves_something_to_be_done():
    """No promises in place of text."""
    marks = re.compile(r"\b(?:TODO|FIXME|TBD|XXX)\b|@[A-Z]+@")
    assert [path.name for path in DOCUMENTS if marks.search(path.read_text("utf-8"))] == []


def curls(text: str) -> list[str]:
    """The curl commands of a document's shell blocks, in order, each as one shell command."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    joined = [re.sub(r"\\\n\s*", "", block) for block in blocks]
    return [line for block in joined for line in block.splitlines() if line.startswith("curl ")]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_commands_of_the_readme_work_against_a_real_server(tmp_path):
    """In the order in which they stand: each succeeds, and the search finds what was written before."""
    found = curls(read("README.md"))
    assert len(found) >= 4
    with serving(tmp_path / "data") as server:
        answers = []
        for command in found:
            given = {"KEY": server.key, "URL": server.url, "PATH": "/usr/bin:/bin:/usr/local/bin", "NO_PROXY": "*"}
            shell = ["sh", "-c", command.replace("curl ", "curl --fail ", 1)]
            done = subprocess.run(shell, env=given, capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            answers.append((command, json.loads(done.stdout)))
        searches = [answer for command, answer in answers if "/v1/memory/search" in command]
        assert searches
        assert all(answer["total"] >= 1 for answer in searches)
