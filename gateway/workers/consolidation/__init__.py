"""Consolidation (EverMemOS's role): extract, score, dedupe, merge, conflict, decay, archive, profile evolution.

A pass looks at a bounded batch of what changed, one step a file, each built of skills. What it finds stays a candidate
or becomes a draft until policy or a person says otherwise (design section 8; seed 004 section H; seed 002).
"""
