"""Memory Gateway: one long-term memory for many agents and people, kept as Markdown in an Obsidian vault."""

__version__ = "0.1.0"
