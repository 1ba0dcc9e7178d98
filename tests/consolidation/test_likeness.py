"""What is the same, what is not, what contradicts: on the self-written sets, by words alone."""

from __future__ import annotations

import itertools

import pytest

from gateway.skills.contradiction import contradiction
from gateway.skills.lexicon import lexicon
from gateway.skills.likeness import compare, hard_difference
from gateway.skills.wording import statement
from tests.consolidation.world import data

REPEATS, NEAR, CONFLICTS = data("repeats"), data("near_misses"), data("conflicts")


def verdict(one: str, other: str, similarity: float | None = None) -> str:
    return compare(statement(one), statement(other), similarity).verdict


@pytest.mark.parametrize("group", REPEATS, ids=lambda group: group["group"])
def test_ten_ways_to_say_one_thing_are_at_most_two(group):
    """Joined where two are the same, they fall into one or two groups without any vector."""
    parts = [{text} for text in group["texts"]]
    for one, other in itertools.combinations(group["texts"], 2):
        if verdict(one, other) == "same":
            mine, theirs = (next(part for part in parts if text in part) for text in (one, other))
            if mine is not theirs:
                mine |= theirs
                parts.remove(theirs)
    assert len(parts) <= 2


@pytest.mark.parametrize("pair", NEAR, ids=lambda pair: f"{pair['kind']}: {pair['a'][:30]}")
@pytest.mark.parametrize("similarity", [None, 0.9999])
def test_a_near_miss_stays_apart_however_near_it_is(pair, similarity):
    """No similarity makes a repeat of another number, name, date, negation or object."""
    assert len(NEAR) >= 40
    assert verdict(pair["a"], pair["b"], similarity) != "same"
    assert verdict(pair["b"], pair["a"], similarity) != "same"


@pytest.mark.parametrize("pair", CONFLICTS, ids=lambda pair: f"{pair['kind']}: {pair['a'][:30]}")
def test_contradictions_are_seen_and_nothing_else(pair):
    """Both ways round."""
    assert (contradiction(pair["a"], pair["b"]) is not None) == pair["conflict"]
    assert (contradiction(pair["b"], pair["a"]) is not None) == pair["conflict"]


def test_repeats_do_not_contradict_each_other():
    for group in REPEATS:
        for one, other in itertools.combinations(group["texts"], 2):
            assert contradiction(one, other) is None, (one, other)


def test_a_model_is_never_asked_about_what_must_agree():
    assert hard_difference(statement("Port 80 is open."), statement("Port 81 is open.")) == "another number"
    assert hard_difference(statement("I like tea."), statement("I don't like tea.")) is not None
    assert hard_difference(statement("My brother plays the piano."), statement("My brother plays the violin.")) is None


def test_the_user_by_name_and_as_i_are_one():
    one, other = statement("Tom prefers dark mode.", "tom"), statement("I prefer dark mode.", "tom")
    assert compare(one, other).verdict == "same"
    assert compare(statement("Ann prefers dark mode.", "tom"), other).verdict == "apart"


SPELLINGS = [
    ("I cannot eat nuts.", "I can't eat nuts."),
    ("I wake up at 6 AM.", "I wake up at 6am."),
    ("We use version 1.2.", "We use v1.2."),
    ("The meeting is at 9:00.", "The meeting is at 9."),
    ("My budget is 10k euros.", "My budget is 10,000 euros."),
    ("The release is on May 3, 2025.", "The release is on 2025-05-03."),
    ("I do not like fish.", "I dislike fish."),
    ("我不喜欢鱼。", "我讨厌鱼。"),
    ("The limit is 20%.", "The limit is 20 percent."),
    ("I don't drink coffee.", "I never drink coffee."),
    ("预算是五百万欧元。", "预算是 5000000 欧元。"),
    ("In the evening I drink tea.", "I drink tea in the evening."),
    ("We deploy on Friday in the evening.", "In the evening on Friday we deploy."),
    ("For the billing service we use Postgres.", "We use Postgres for the billing service."),
    ("I always drink tea in the evening.", "I drink tea in the evening."),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_one_thing_in_another_spelling_or_place_is_the_same(one, other):
    assert verdict(one, other) == verdict(other, one) == "same"
    assert contradiction(one, other) is None


def test_what_goes_without_saying_is_one_thing_of_a_kind():
    """Else "always" and "usually" would both be what has neither, and so one."""
    kinds = [shade.partition("=")[0] for shade in lexicon().unmarked]
    assert len(kinds) == len(set(kinds))


def test_a_long_text_is_the_same_only_as_itself():
    """What stands behind the first 2,000 characters is not looked at, so nothing is concluded from them."""
    shared = "The runbook says what to do first. " * 80
    one, other = f"{shared}The password rotates on Monday.", f"{shared}Invoices are in the blue folder."
    assert verdict(one, other) == verdict(one, shared) == "apart"
    assert hard_difference(statement(one), statement(other)) is not None
    assert verdict(one, one) == "same"


@pytest.mark.parametrize("text", ["", "。", "a" * 5_000, "no no no", "不不不", "\ud800", "😀" * 10, "1" * 3_000])
def test_any_text_can_be_compared(text):
    assert compare(statement(text), statement("I like tea.")).verdict in ("apart", "unsure")
    assert compare(statement(text), statement(text)).verdict == "same"
