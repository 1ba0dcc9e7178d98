"""`log`, `diff` and `revert`: beside a running server, and on the data directory alone."""

from __future__ import annotations

import json

from tests.journeys.running import run, serving


def test_the_history_of_a_memory_in_the_terminal(tmp_path):
    """What changed, by whom, and back again; a note's own signs do nothing to the terminal."""
    data = tmp_path / "data"

    def ask(*arguments: str) -> str:
        done = run(arguments[0], "--data-dir", data, *arguments[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    with serving(data) as server:
        made = server.http.post("/v1/memory", json={"content": "The [red]gate[/] code is \x1b[31m7."}).json()
        change = {"content": "The gate has no code.", "version": 1}
        assert server.http.patch(f"/v1/memory/{made['id']}", json=change).status_code == 200
        lines = ask("log", made["id"]).splitlines()
        assert [line.split()[0] for line in lines] == ["2", "1"]
        assert all(" user " in line and "administrator" in line for line in lines)
        shown = ask("diff", made["id"])
        assert "-The [red]gate[/] code is \\u001b[31m7." in shown
        assert "+The gate has no code." in shown
        assert "version 3 says again what 1 said" in ask("revert", made["id"], "1")
        assert "nothing was written" in ask("revert", made["id"], "3")
        assert run("diff", "--data-dir", data, "--json", made["id"], "1", "HEAD").returncode == 2
    assert json.loads(ask("revert", "--json", made["id"], "2"))["version"] == 4
