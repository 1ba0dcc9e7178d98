"""A person who knows nothing of the product accepts their first draft by what Home.md says, with files only."""

import re

import httpx
import pytest

from tests.journeys.running import Server, eventually, serving


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path / "data") as running:
        yield running


def guess(server: Server, text: str) -> None:
    key = (server.data / "agent.key").read_text("ascii").strip()
    body = {"content": text, "source": "conversation", "confidence": 0.7}
    answer = httpx.post(
        f"{server.url}/v1/memory", json=body, headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    assert answer.status_code == 202


def test_following_home_to_the_letter(server):
    guess(server, "The owner likes green tea.")
    guess(server, "The owner likes dragons.")
    home = (server.vault / "Home.md").read_text("utf-8")
    section = home.partition("## Decide a draft")[2].partition("\n## ")[0]
    folder, accepted, rejected = (
        re.search(rf"`({name})`", section).group(1)
        for name in ("Reviews/Queue", "Reviews/Accepted", "Reviews/Rejected")
    )
    word_of, accept, reject = re.search(r"Set the property `(\w+)` to `(\w+)` or `(\w+)`", section).groups()
    tea, dragons = (
        next(file for file in (server.vault / folder).glob("*.md") if word in file.name) for word in ("tea", "dragons")
    )
    box = [line for line in tea.read_text("utf-8").splitlines() if line.startswith(">")]
    assert "assistant" in box[0], "who proposes what"
    assert any("Why" in line for line in box)
    text = tea.read_text("utf-8").replace("likes green tea", "likes green tea, without sugar")
    tea.write_text(text.replace(f"\n{word_of}:\n", f"\n{word_of}: {accept}\n"), "utf-8")
    dragons.rename(server.vault / rejected / dragons.name)
    assert reject == "reject"
    eventually(lambda: not list((server.vault / folder).glob("*.md")))
    own = re.search(r"yours is `([^`]+)`", section).group(1)
    (note,) = eventually(lambda: list((server.vault / own).glob("*.md")))
    assert note.read_text("utf-8").endswith("The owner likes green tea, without sugar.\n")
    (draft,) = eventually(lambda: list((server.vault / accepted).glob("*.md")))
    assert f"[[{own}/{note.stem}]]" in draft.read_text("utf-8")
    assert eventually(lambda: server.find("green tea"))[0]["content"] == "The owner likes green tea, without sugar."
    assert server.find("dragons") == []
    with pytest.raises(AssertionError):
        guess(server, "The owner likes dragons.")
