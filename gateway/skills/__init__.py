"""The ten skills: a verb each, typed in and out. Each says as data whether it writes long-term memory."""

from __future__ import annotations

from gateway.skills import (
    classify,
    commit,
    export_to_obsidian,
    extract,
    import_from_obsidian,
    ingest,
    merge,
    prune,
    retrieve_context,
    summarize,
)
from gateway.skills.contract import Skill

SKILLS: tuple[Skill, ...] = (
    ingest.SKILL,
    extract.SKILL,
    classify.SKILL,
    retrieve_context.SKILL,
    commit.SKILL,
    summarize.SKILL,
    merge.SKILL,
    prune.SKILL,
    export_to_obsidian.SKILL,
    import_from_obsidian.SKILL,
)
