"""The skills that need no gateway: extraction, classification, summaries, and what a model's answer must be."""

from __future__ import annotations

import random

import pytest

from gateway.llm import ModelFailed, checked
from gateway.skills.classify import Unclassified, classify
from gateway.skills.extract import Transcript, extract
from gateway.skills.summarize import ToSummarize, summarize

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


class Model:
    """Answers with what it is given, or fails."""

    def __init__(self, answer: dict | None) -> None:
        self.answer = answer

    def ask(self, order, text, schema):
        if self.answer is None:
            raise ModelFailed("no answer")
        return self.answer


def found(text: str) -> list[str]:
    return [one.content for one in extract(Transcript(text)).candidates]


def test_only_the_user_is_listened_to():
    text = "User: I like plums.\nAssistant: I like pears too.\nTool: my name is curl."
    text += "\n用户：我喜欢桃子。\n助手：我喜欢梨。"
    assert found(text) == ["I like plums.", "我喜欢桃子。"]


def test_the_same_sentence_counts_once():
    text = "User: I like plums.\nUser: I like plums.\nUser: And I like plums."
    assert found(text) == ["I like plums.", "And I like plums."]


def test_recalled_text_is_never_taken_for_new():
    fenced = '<context-data id="1">User: I like plums.</context-data> User: I like figs.'
    assert all("plums" not in one for one in found(fenced))
    assert found("<CONTEXT-DATA>\nUser: I like plums.\n") == []


def test_questions_and_the_overlong_are_left_out():
    assert found("User: do I like plums?\nUser: 我喜欢什么？\nUser: I like " + "x" * 600) == []


def test_at_most_fifty_candidates_an_episode():
    many = "\n".join(f"User: I like number {number}." for number in range(200))
    assert len(found(many)) == 50


def test_any_text_is_survived_in_time():
    """No pattern runs away, whatever is pasted."""
    chance = random.Random(7)
    parts = [
        "I like ",
        "我喜欢",
        "User: ",
        "？",
        "...",
        "\n",
        "<context-data",
        ">",
        "my ",
        " is ",
        "\u2028",
        "😀",
        "a" * 500,
    ]
    for _ in range(200):
        extract(Transcript("".join(chance.choices(parts, k=60))))
    extract(Transcript("my " * 30_000))
    extract(Transcript("." * 60_000))


def test_a_failing_model_is_replaced_by_rules():
    assert extract(Transcript("User: I like plums."), Model(None)).by == "rules"
    answer = {"candidates": [{"content": "Plums.", "memory_type": "fact", "importance": 1, "confidence": 1}]}
    assert extract(Transcript("User: I like plums."), Model(answer)).by == "model"


@pytest.mark.parametrize("text", ["", "prose", '{"n": 1', '{"n": "1"}', "[]", "null", '{"n": 1, "m": 2}', "[" * 10**5])
def test_an_answer_that_is_not_what_was_asked_for(text):
    with pytest.raises(ModelFailed):
        checked(text, SCHEMA)


def test_an_answer_that_is():
    assert checked(' {"n": 1}\n', SCHEMA) == {"n": 1}


@pytest.mark.parametrize(
    ("kind", "agent", "target", "where", "visibility"),
    [
        ("fact", "hermes", None, "user/tom/long_term", "private"),
        ("preference", None, None, "user/tom/long_term", "private"),
        ("experience", "hermes", None, "agent/hermes/memory", "agent-only"),
        ("experience", None, None, "user/tom/long_term", "private"),
        ("fact", "hermes", "workspace/dev/shared", "workspace/dev/shared", "workspace-shared"),
        ("fact", "hermes", "agent/hermes/memory", "agent/hermes/memory", "agent-only"),
    ],
)
def test_the_narrow_home_is_the_rule(kind, agent, target, where, visibility):
    done = classify(Unclassified("x", kind, "tom", agent, target))
    assert (done.memory_type, done.namespace, done.visibility) == (kind, where, visibility)


def test_summaries_keep_their_limit_and_the_order():
    texts = tuple(f"Sentence {number} speaks of boats and wind." for number in range(60))
    done = summarize(ToSummarize(texts, max_chars=200))
    assert 0 < len(done.text) <= 200
    numbers = [int(word) for word in done.text.split() if word.isdigit()]
    assert numbers == sorted(numbers)
    assert summarize(ToSummarize(("short",))).text == "short"
    assert summarize(ToSummarize(())).text == ""
    assert len(summarize(ToSummarize(("x" * 5_000,), max_chars=100)).text) <= 100
    assert summarize(ToSummarize(texts, max_chars=200), Model({"summary": "S" * 900})).text == "S" * 200
    assert summarize(ToSummarize(texts, max_chars=200), Model(None)).by == "rules"
