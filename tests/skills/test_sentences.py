"""Sentences: cut where they end, and nowhere else; in a time that grows with the text and no faster."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gateway.skills.extract import Transcript, extract
from gateway.skills.sentences import pieces, sentences
from gateway.skills.summarize import ToSummarize, summarize

WHOLE = [
    "The limit is 1.5 million and I prefer Postgres.",
    "My doctor is Dr. Weber.",
    "I told Mrs. Weber and Prof. Stein that I prefer tea.",
    "I live in St. Gallen.",
    "I prefer Node.js for backends.",
    "We decided to use Python 3.12 for the API.",
    "My email is tom.smith@example.org.",
    "Please remember that I take 2.5 mg of aspirin.",
    "I like citrus fruit, e.g. lemons.",
    "I like one fruit, i.e. Lemons of Sicily.",
    "I like lemons, limes etc. when they are fresh.",
    "I prefer Postgres vs. MySQL.",
    "Remember that No. 5 is my house.",
    "My dose is approx. 20 drops.",
    "My meeting is at 9 a.m. on Mondays.",
    "My sister is J. Smith.",
    "My father is J. R. R. Smith.",
    "My cousin is in the U.S. Navy.",
    "Remember that the VPN is at vpn.example.com and I never use example.net.",
    "My file is at https://x.example/a.md?q=1.5&b=2!c.",
    "Remember that 记住版本3.12是我们用的",
    "我们决定用 Node.js 和 Python 3.12。",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_dot_inside_a_sentence_does_not_cut_it(text):
    assert list(sentences(text)) == [text]
    assert [one.content for one in extract(Transcript(f"User: {text}")).candidates] == [text]
    told = (text, *(f"The day has {number}.5 hours of wind." for number in range(40)))
    whole = summarize(ToSummarize(told, max_chars=300)).text
    for sentence in told:
        whole = whole.replace(sentence, "")
    assert whole.strip() == ""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I like tea. I live in Bern.", ["I like tea.", "I live in Bern."]),
        ("i like tea. i live in bern", ["i like tea.", "i live in bern"]),
        ("The port is 8080. I like tea!", ["The port is 8080.", "I like tea!"]),
        ("I like plan B. We agreed on it.", ["I like plan B.", "We agreed on it."]),
        ("So do I. Tom does too.", ["So do I.", "Tom does too."]),
        ("The timeout is 30 ms. We use it.", ["The timeout is 30 ms.", "We use it."]),
        ("I said no. It rains.", ["I said no.", "It rains."]),
        ("I rise at 5 a.m. We all do.", ["I rise at 5 a.m.", "We all do."]),
        ("We sell tea, milk etc. I like tea.", ["We sell tea, milk etc.", "I like tea."]),
        ("What? I like tea... Really!? Yes", ["What?", "I like tea...", "Really!?", "Yes"]),
        ("我喜欢茶。我住在伯尔尼！真的？！是", ["我喜欢茶。", "我住在伯尔尼！", "真的？！", "是"]),
        ("我喜欢茶.我住在伯尔尼!真的", ["我喜欢茶.", "我住在伯尔尼!", "真的"]),
        ("他说：“我喜欢茶。”我也是。", ["他说：“我喜欢茶。”", "我也是。"]),
        ('He said "I like tea." I do too.', ['He said "I like tea."', "I do too."]),
        ("**I like tea.** (I live in Bern.) Yes.", ["**I like tea.**", "(I live in Bern.)", "Yes."]),
        ("one\ntwo\u2028three\n\n", ["one", "two", "three"]),
        ("1. I like tea.\n2. I like milk.\n10. 我喜欢茶。", ["I like tea.", "I like milk.", "我喜欢茶。"]),
        ("", []),
        (" \n. ", ["."]),
    ],
)
def test_sentences_end_at_their_marks(text, parts):
    assert list(sentences(text)) == parts


def test_a_numbered_list_gives_its_statements():
    found = extract(Transcript("User: 1. I prefer tea.\n2. I live in Bern.")).candidates
    assert [one.content for one in found] == ["I prefer tea.", "I live in Bern."]


def test_pieces_keep_every_character_and_the_limit():
    for text in (
        "a" * 95,
        "One. Two two. Three three three. " * 9,
        "no end at all " * 9,
        "我喜欢茶。" * 30,
        "",
        "a. b",
    ):
        for limit in (1, 7, 20, 1000):
            cut = list(pieces(text, limit))
            assert "".join(cut) == text
            assert all(0 < len(one) <= limit for one in cut)
    assert list(pieces("One two. Three four. Five", 12)) == ["One two.", " Three four.", " Five"]


HOSTILE = [
    "a", "a.", ". ", ".", "...! ", "！", "!x", " ", "\n", "\t", "\u2028", "a\n", "<", "<context-data", "<context-data>",
    "</context-data>", "<user>", "</user>", "<assistant ", "<a ", "**A:** ", "[", "[a] ", "(", "`", "```\n", "_", "_a",
    "- a: b\n", "A: b\n", "1. ", "12:30 ", "Tool: a\n\n", "User: I like a. ", "my ", "my a is ", "e.g. ", "J. ", "A.",
    "Dr. ", "我", "我喜欢", "？", "? ", '"', "。”", "we w w ", "lesson ", "SOUL.md\n", "#", "> ", "😀", "::", "：",
]  # fmt: skip
_READ = """
import json, sys
from gateway.skills.extract import Transcript, extract, known_lines
from gateway.skills.sentences import pieces
from gateway.skills.summarize import ToSummarize, summarize

known = known_lines(["something that is known"])
for text in json.load(sys.stdin):
    extract(Transcript(text, known))
    summarize(ToSummarize((text[:SUMMARIZED],)))
    list(pieces(text, 1000))
"""


@pytest.mark.parametrize("shape", ["{}", "User: see {}.b and more"])
def test_no_text_holds_a_thread(shape):
    """In another process, as a pattern that runs away cannot be interrupted. A square of the length takes minutes."""
    texts = [shape.format((unit * 80_000)[:80_000]) for unit in HOSTILE]
    _read(texts, "20000")


def test_the_longest_episode_is_read_in_time():
    """200,000 characters, as an agent may send."""
    units = ["a", "a.", "<context-data", " ", "\n", "User: "]
    _read([f"see {(unit * 200_000)[:200_000]}.b and more" for unit in units], "None")


def _read(texts: list[str], summarized: str) -> None:
    code = _READ.replace("SUMMARIZED", summarized)
    subprocess.run([sys.executable, "-c", code], input=json.dumps(texts), text=True, check=True, timeout=60)
