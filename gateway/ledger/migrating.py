"""Brings the ledger's tables up to date. Alembic, a tenth of a start, is imported only where something is to do."""

from __future__ import annotations

import re
from importlib.resources import files

import sqlalchemy as sa

from gateway.errors import Unavailable

_FILE = re.compile(r"m(\d{4})_\w+\.py")


def migrate(engine: sa.Engine, url: str) -> None:
    """Run the migrations that the ledger has not seen.

    Raises:
        Unavailable: the ledger was made by a newer gateway.
    """
    if _revision(engine) != newest_revision():
        _upgrade(engine, url)


def newest_revision() -> str:
    """The revision of the newest migration, as its file's name tells it: `m0001_….py` is revision 0001."""
    versions = files("gateway.ledger.migrations") / "versions"
    return max(found[1] for one in versions.iterdir() if (found := _FILE.fullmatch(one.name)))


def _revision(engine: sa.Engine) -> str | None:
    version = sa.table("alembic_version", sa.column("version_num", sa.String))
    with engine.connect().execution_options(reading=True) as connection:
        if not sa.inspect(connection).has_table(version.name):
            return None
        return connection.execute(sa.select(version.c.version_num)).scalar()


def _upgrade(engine: sa.Engine, url: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "gateway.ledger:migrations")
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    current = _revision(engine)
    known = {revision.revision for revision in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise Unavailable(
            f"The ledger was made by a newer gateway (revision {current}).",
            advice="Update memory-gateway, then start again.",
        )
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
