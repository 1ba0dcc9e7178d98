"""Consolidation on self-written sets: repeats found, near misses kept apart, contradictions, profile promotions.

    python tests/bench/consolidation.py [--no-vectors]

One run with a baseline (the same normalised text, by hash), by words, with vectors of the local model, with a language
model, and with both. The model is a server on loopback that answers from recorded replies: it shows what the road makes
of right answers, not how good a model is. Half `a` chose the constants, `b` was looked at while the word list was
written, `c` was written afterwards; `e` by somebody who had not seen the rules.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from gateway.bootstrap import open_gateway  # noqa: E402
from gateway.config import LanguageModelSettings, load_settings  # noqa: E402
from gateway.index.embed import EmbeddingConfig, open_embedder  # noqa: E402
from gateway.llm import ChatModel  # noqa: E402
from gateway.skills.contradiction import contradiction  # noqa: E402
from gateway.skills.likeness import compare  # noqa: E402
from gateway.skills.nearness import similarity  # noqa: E402
from gateway.skills.paraphrase import paraphrases  # noqa: E402
from gateway.skills.wording import statement  # noqa: E402
from tests.conftest import IMPATIENT  # noqa: E402
from tests.consolidation.model_server import ModelServer  # noqa: E402
from tests.consolidation.world import World, data  # noqa: E402

Same = Callable[[str, str], bool]
PROFILE_GROUPS = ("dark mode", "black coffee", "short answers")
ONCE = ("I like rowing at dusk.", "I prefer tea with lemon.", "I enjoy opera.", "我喜欢下棋。", "I like wet weather.")


@dataclass(frozen=True, slots=True)
class Way:
    """How two texts are compared."""

    name: str
    vectors: bool = False
    model: bool = False
    words: bool = True


WAYS = (
    Way("hash only (baseline)", words=False),
    Way("words"),
    Way("words + vectors", vectors=True),
    Way("words + model", model=True),
    Way("words + vectors + model", vectors=True, model=True),
)


class Judge:
    """Compares texts in every way, with one embedder and one model."""

    def __init__(self, *, vectors: bool) -> None:
        self.embedder = open_embedder(EmbeddingConfig(provider="local", threads=2)).embedder if vectors else None
        self.server = ModelServer()
        self.model = ChatModel(LanguageModelSettings.model_validate(self.server.llm))
        self.kept: dict[str, object] = {}

    def same(self, way: Way) -> Same:
        """Whether two texts are one memory, in a way."""
        return lambda one, other: self._same(way, one, other)

    def close(self) -> None:
        """Stop model and embedder."""
        self.model.close()
        self.server.stop()
        if self.embedder is not None:
            self.embedder.close()

    def _same(self, way: Way, one: str, other: str) -> bool:
        mine, theirs = statement(one), statement(other)
        if not way.words:
            return mine.key == theirs.key
        near = similarity(self._vector(one), self._vector(other)) if way.vectors else None
        verdict = compare(mine, theirs, near).verdict
        return verdict == "same" or (
            verdict == "unsure" and way.model and paraphrases(one, [other], self.model) == [True]
        )

    def _vector(self, text: str):
        if self.embedder is None:
            return None
        if text not in self.kept:
            self.kept[text] = self.embedder.embed_passages([text])[0]
        return self.kept[text]


def groups_of(texts: list[str], same: Same) -> int:
    """How many memories the texts of one group become, joined where two are the same."""
    parts = [{text} for text in texts]
    for one, other in itertools.combinations(texts, 2):
        mine, theirs = (next(part for part in parts if text in part) for text in (one, other))
        if mine is not theirs and same(one, other):
            mine |= theirs
            parts.remove(theirs)
    return len(parts)


def pairs(half: str) -> Iterator[tuple[str, str]]:
    """The pairs of repeats of a half."""
    for group in (*data("repeats"), *data("reworded")):
        if group["half"] == half:
            yield from itertools.combinations(group["texts"], 2)


def measured(judge: Judge, way: Way) -> dict[str, str]:
    """One line of the table."""
    same = judge.same(way)
    near = data("near_misses")
    wrong = [pair for pair in near if same(pair["a"], pair["b"])]
    found = {half: [same(*pair) for pair in pairs(half)] for half in "abce"}
    right = sum(map(sum, found.values()))
    share = {half: f"{sum(hits) / len(hits):.2f} of {len(hits)}" for half, hits in found.items()}
    memories = [groups_of(group["texts"], same) for group in data("repeats")]
    return {
        "precision": f"{right / (right + len(wrong)) if right else 1.0:.3f}",
        "recall a": share["a"],
        "recall b": share["b"],
        "recall c": share["c"],
        "recall e": share["e"],
        "memories of 10 repeats": f"{sum(memories) / len(memories):.1f} (most {max(memories)})",
        "near misses apart": f"{len(near) - len(wrong)} of {len(near)}",
    }


def conflicts() -> str:
    """Contradictions found and wrongly seen: words alone decide, so that all ways but the baseline are alike."""
    rows = [*data("conflicts"), *data("conflicts_unseen")]
    told = [(row["conflict"], contradiction(row["a"], row["b"]) is not None) for row in rows]
    found, real = sum(seen for wanted, seen in told if wanted), sum(wanted for wanted, _ in told)
    wrongly = sum(seen for wanted, seen in told if not wanted)
    return f"contradictions: {found} of {real} found, {wrongly} of {len(told) - real} seen where there is none"


def profiles(way: Way, llm: dict) -> str:
    """Through a whole gateway: three preferences in three conversations each, five that one conversation repeats."""
    settings = {**IMPATIENT, "embedding": {"provider": "local" if way.vectors else "none"}}
    settings |= {"llm": llm} if way.model else {}
    with tempfile.TemporaryDirectory() as folder:
        gateway = open_gateway(load_settings(data_dir=Path(folder), **settings))
        try:
            world = World(gateway).people()
            groups = [group for group in data("repeats") if group["group"] in PROFILE_GROUPS]
            for group in groups:
                for number, text in enumerate((group["texts"][0], group["texts"][5], group["texts"][6])):
                    world.told(text, f"{group['group'].replace(' ', '-')}-{number}")
            for _ in range(10):
                world.say("once", *ONCE)
            world.end("once")
            for _ in range(4):
                world.run()
            drafts = [draft for draft in world.drafts() if draft.namespace == "user/tom/profile"]
            lines = [line for draft in drafts for line in world.draft_text(draft).split("\n") if line.startswith("- ")]
            right = sum(any(f"- {text}" in lines for text in group["texts"]) for group in groups)
            wrong = sum(f"- {text}" in lines for text in ONCE)
        finally:
            gateway.close()
    return f"{right} of {len(groups)} proposed, {wrong} of {len(ONCE)} wrongly"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-vectors", action="store_true", help="leave the local embedding model out")
    arguments = parser.parse_args()
    judge = Judge(vectors=not arguments.no_vectors)
    try:
        ways = [way for way in WAYS if not (way.vectors and arguments.no_vectors)]
        rows = {way.name: measured(judge, way) for way in ways}
        for way in ways:
            rows[way.name]["profile"] = profiles(way, judge.server.llm) if way.words else "-"
    finally:
        judge.close()
    columns = list(next(iter(rows.values())))
    print("| way | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(row[column] for column in columns) + " |")
    print(f"\n{conflicts()}")


if __name__ == "__main__":
    main()
