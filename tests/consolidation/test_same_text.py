"""What ended or was disproved is not "there already" when a person writes or accepts the same text anew."""

import pytest

from tests.consolidation.test_memories import judge
from tests.consolidation.world import TOM


@pytest.mark.parametrize("how", ["over", "incorrect"])
def test_accepting_makes_a_new_memory(world, how):
    kept = world.remember("I live in Berlin.", TOM, **({"valid_until": "2020-01-01"} if how == "over" else {}))
    world.run()
    if how == "incorrect":
        judge(world, kept, "incorrect")
    for number in range(2):
        world.told("I live in Berlin.", f"s{number}")
    world.run()
    (draft,) = world.drafts("create")
    new = world.accept(draft)
    assert new != kept
    world.told("I live in Berlin.", "s9")
    assert [one.leader for one in world.run().supported] == [new]


def test_a_person_may_write_again_what_ended(world):
    kept = world.remember("I live in Berlin.", TOM, valid_until="2020-01-01")
    assert world.remember("I live in Berlin.", TOM) != kept
