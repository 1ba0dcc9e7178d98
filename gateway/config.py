"""The settings: one frozen value, read here and nowhere else.

Order of precedence: explicit arguments (command line), `MEMORY_GATEWAY_*` environment variables,
`gateway.toml` in the data directory, defaults. An unknown or wrong setting stops the start.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from gateway.errors import BadSettings

ENV_PREFIX = "MEMORY_GATEWAY_"
SETTINGS_FILE = "gateway.toml"


class Group(BaseModel):
    """A table of `gateway.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class VaultSource(Group):
    """Notes of an existing vault that are read as memories and never written (design section 2, rule 8)."""

    glob: str = Field(description="Which notes, relative to the vault, e.g. `Notes/**/*.md`.")
    namespace: str = Field(description="Whose memories they are, e.g. `user/owner/long_term`.")


class VaultSettings(Group):
    """`[vault]`"""

    owner: str = Field("owner", description="User id that owns `Memories/LongTerm` and a one-person vault.")
    sources: tuple[VaultSource, ...] = Field((), description="Read-only notes of an existing vault.")
    max_note_bytes: int = Field(2 * 1024 * 1024, ge=1024, description="A larger note is listed as a problem.")


class GitSettings(Group):
    """`[git]`"""

    commit_people: Literal["auto", "never"] = Field(
        "auto", description="Commit people's own edits after a quiet period; `never` where another tool commits."
    )
    quiet_seconds: float = Field(30.0, ge=0, description="Quiet time before a person's edit is committed.")
    batch_seconds: float = Field(1.0, ge=0.05, description="The gateway's own writes wait at most this long.")
    batch_notes: int = Field(100, ge=1, le=5000, description="At most this many notes in one batch of commits.")
    person_name: str = Field("Vault owner", description="Author of people's edits where git knows no user.name.")
    person_email: str = Field("owner@vault.local", description="E-mail of people's edits, likewise.")
    remote: str | None = Field(None, description="Name of the git remote to fetch from and push to; none: no sync.")
    remote_branch: str = Field("main", description="The branch of the remote that holds the vault.")
    sync_seconds: float = Field(60.0, ge=1, description="Time between two syncs with the remote.")
    sync_timeout_seconds: float = Field(60.0, ge=1, description="Deadline of one fetch or push.")
    push: bool = Field(True, description="Push to the remote; otherwise only fetch and merge.")


class ReviewSettings(Group):
    """`[review]`"""

    mode: Literal["files", "branch"] = Field(
        "files", description="`branch`: each draft is also a git branch that a pull request can carry."
    )
    agents: Literal["strict", "light", "none"] = Field(
        "strict",
        description="What agents write that a person must accept: `strict` what they inferred and every change of a "
        "person's memory, `light` only the latter, `none` only what reads like an instruction.",
    )
    users: Literal["strict", "light", "none"] = Field(
        "light", description="Likewise for users: `strict` everything, `light` what reads like an instruction."
    )
    told_confidence: float = Field(
        0.8, ge=0, le=1, description="An agent's `manual` memory is what its user told it, if it is at least this sure."
    )


class EmbeddingSettings(Group):
    """`[embedding]`"""

    provider: Literal["local", "openai", "none"] = Field("local", description="Where vectors come from.")
    model: str | None = Field(None, description="Model name for the `openai` provider.")
    base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible service, up to `/v1`.")
    api_key: SecretStr | None = Field(None, description="Its key; better set by environment variable.")
    dimension: int | None = Field(None, ge=1, le=8192, description="Vector width; shorter answers are zero-padded.")
    batch_size: int = Field(16, ge=1, le=512, description="Texts per call when embedding in the background.")
    timeout_seconds: float = Field(30.0, gt=0, description="Deadline of one background call.")
    query_timeout_seconds: float = Field(2.0, gt=0, description="Deadline of a query's vector; keywords answer alone.")
    threads: int = Field(1, ge=1, le=64, description="Threads of the local model.")


class LanguageModelSettings(Group):
    """`[llm]`"""

    provider: Literal["openai", "none"] = Field("none", description="A language model for extraction and summaries.")
    base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible chat service, up to `/v1`.")
    model: str | None = Field(None, description="Model name.")
    api_key: SecretStr | None = Field(None, description="Its key; better set by environment variable.")
    timeout_seconds: float = Field(30.0, gt=0, description="Deadline of one answer, retries included.")


class WatchSettings(Group):
    """`[watch]`"""

    enabled: bool = Field(True, description="Listen to the file system; the scan runs in any case.")
    scan_seconds: float = Field(30.0, gt=0, description="Time between two scans.")
    settle_seconds: float = Field(0.1, ge=0, description="A file changed more recently than this is read a bit later.")
    absence_seconds: float = Field(2.0, ge=0, description="A note must be gone this long, twice seen, to be deleted.")
    canary_seconds: float = Field(20.0, gt=0, description="Time between two proofs that the watcher hears.")


class IndexSettings(Group):
    """`[index]`"""

    max_unindexed_rows: int = Field(1000, ge=10, description="Optimise when more rows than this are unindexed.")
    max_fragments: int = Field(40, ge=2, description="Optimise when the table has more fragments than this.")
    keep_versions_seconds: int = Field(300, ge=0, description="Old table versions are removed after this time.")
    decay: bool = Field(True, description="Age, importance and feedback weigh in when hits are ranked.")
    fold_duplicates: bool = Field(True, description="Memories that say the same are shown once.")
    fusion: Literal["adaptive", "rrf"] = Field("adaptive", description="How keyword and vector hits are fused.")


class PolicySettings(Group):
    """`[policy]`"""

    max_body_bytes: int = Field(4 * 1024 * 1024, ge=1024, description="Largest request body.")
    max_query_chars: int = Field(20_000, ge=100, description="Longest search query.")
    max_page: int = Field(200, ge=1, le=1000, description="Largest page of a list or search.")
    max_answer_bytes: int = Field(262_144, ge=4096, description="Largest search answer; the rest is cut and said so.")
    requests_per_minute: int = Field(12_000, ge=1, description="Requests a minute and key; more are answered with 429.")
    request_burst: int = Field(2_000, ge=1, description="Requests of one key that may come at once.")
    session_ttl_seconds: int = Field(604_800, ge=60, description="How long a session lives when it does not say.")
    max_session_ttl_seconds: int = Field(7_776_000, ge=60, description="Longest life of a session.")
    promote_importance: float = Field(0.6, ge=0, le=1, description="Candidates from here on become memories on commit.")
    promote_confidence: float = Field(0.8, ge=0, le=1, description="…if they are also at least this sure.")
    audit_days: int = Field(365, ge=1, description="Audit entries older than this are removed.")
    idempotency_hours: int = Field(48, ge=24, description="How long a first answer is kept for retries.")
    event_streams: int = Field(64, ge=1, description="Streams of events (`GET /v1/events`) that may be open at once.")
    event_streams_per_key: int = Field(8, ge=1, description="Streams of events that one key may have open.")
    deletion_guard_notes: int = Field(20, ge=1, description="Deletion pauses when more notes than this vanish at once…")
    deletion_guard_share: float = Field(0.1, gt=0, le=1, description="…and more than this share of a namespace.")


class MaintenanceSettings(Group):
    """`[maintenance]`"""

    interval_seconds: float = Field(60.0, gt=0, description="Time between two looks at what there is to tidy.")
    step_seconds: float = Field(20.0, gt=0, description="Longest time of one step; the rest follows in the next round.")
    batch_rows: int = Field(2_000, ge=10, le=100_000, description="Rows that one transaction removes.")
    events_hours: int = Field(24, ge=1, description="How long events are kept for listeners that come back.")
    jobs_days: int = Field(30, ge=1, description="How long jobs that ended are listed.")
    vector_grace_hours: int = Field(24, ge=0, description="How long the vector of a text that is gone is kept.")
    repack_packs: int = Field(50, ge=2, description="Git packs, from which on they are folded together.")
    migration_share: float = Field(
        0.5, gt=0, le=1, description="Share of the time that a change of embedding model may take for itself."
    )


class ConsolidationSettings(Group):
    """`[consolidation]`"""

    enabled: bool = Field(True, description="Consolidate by itself; `memory-gateway consolidate` works in any case.")
    every_seconds: float = Field(300.0, ge=1, description="Time between two passes.")
    items_per_pass: int = Field(50, ge=1, le=1000, description="Changed memories and sessions looked at in one pass.")
    seconds_per_pass: float = Field(30.0, gt=0, description="A pass ends after this time; the rest waits.")
    model_calls_per_pass: int = Field(20, ge=0, description="Calls of the language model in one pass; 0: rules alone.")
    drafts_per_pass: int = Field(10, ge=0, description="Drafts that one pass may put into the review queue.")
    open_drafts: int = Field(50, ge=0, description="No more drafts while so many of consolidation wait.")
    idle_seconds: float = Field(1800.0, ge=0, description="An open session is read after so long without a word.")
    neighbours: int = Field(8, ge=1, le=50, description="Memories of the namespace that one is compared with.")
    candidates_compared: int = Field(200, ge=1, le=2000, description="Open candidates that one is compared with.")
    alike: float = Field(0.995, ge=0, le=1, description="Cosine that confirms a repeat of a bit more words.")
    across: float = Field(0.92, ge=0, le=1, description="The same across two languages.")
    unsure: float = Field(0.9, ge=0, le=1, description="Cosine from which on a language model is asked.")
    promote_score: float = Field(0.55, ge=0, le=1, description="Candidates of this score are proposed or written.")
    direct_sessions: int = Field(2, ge=2, description="Conversations before one is written without a person.")
    profile_sessions: int = Field(3, ge=2, description="Conversations before a preference is proposed for a profile.")
    profile_confidence: float = Field(0.8, ge=0, le=1, description="...if it is also at least this sure.")
    half_life_days: float = Field(90.0, gt=0, description="An unused memory's importance halves in this time.")
    archive_importance: float = Field(0.15, ge=0, le=1, description="Below this, what is left of it is archived.")
    archive_confidence: float = Field(0.2, ge=0, le=1, description="A memory less sure than this is archived.")


class SecretSettings(Group):
    """`[secrets]`"""

    refuse: Literal["all", "none"] = Field(
        "all", description="Texts with a secret are refused, episodes masked, notes held; `none` looks for nothing."
    )
    personal_data: Literal["refuse", "allow"] = Field(
        "refuse", description="Whether numbers of identity cards, mobile phones and bank cards count as secrets."
    )


class Settings(BaseSettings):
    """All settings, frozen."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )
    toml_path: ClassVar[Path | None] = None

    data_dir: Path = Field(description="Holds the vault, the ledger, the index and the admin key.")
    vault_path: Path | None = Field(None, description="The Obsidian vault; default `<data_dir>/vault`.")
    ledger_url: str | None = Field(None, description="SQLAlchemy URL; default SQLite at `<data_dir>/ledger.db`.")
    index_uri: str | None = Field(None, description="LanceDB location; default `<data_dir>/index`.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    allowed_hosts: tuple[str, ...] = Field((), description="Further names accepted in Host and Origin headers.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe level logged.")
    log_format: Literal["console", "json"] = Field("console", description="Shape of log lines.")
    vault: VaultSettings = Field(default_factory=lambda: VaultSettings.model_validate({}))
    git: GitSettings = Field(default_factory=lambda: GitSettings.model_validate({}))
    review: ReviewSettings = Field(default_factory=lambda: ReviewSettings.model_validate({}))
    embedding: EmbeddingSettings = Field(default_factory=lambda: EmbeddingSettings.model_validate({}))
    llm: LanguageModelSettings = Field(default_factory=lambda: LanguageModelSettings.model_validate({}))
    watch: WatchSettings = Field(default_factory=lambda: WatchSettings.model_validate({}))
    index: IndexSettings = Field(default_factory=lambda: IndexSettings.model_validate({}))
    policy: PolicySettings = Field(default_factory=lambda: PolicySettings.model_validate({}))
    maintenance: MaintenanceSettings = Field(default_factory=lambda: MaintenanceSettings.model_validate({}))
    consolidation: ConsolidationSettings = Field(default_factory=lambda: ConsolidationSettings.model_validate({}))
    secrets: SecretSettings = Field(default_factory=lambda: SecretSettings.model_validate({}))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments over environment over `gateway.toml`."""
        del dotenv_settings, file_secret_settings
        if cls.toml_path is None:
            return (init_settings, env_settings)
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=cls.toml_path))

    @property
    def vault_root(self) -> Path:
        """The vault's folder."""
        return self.vault_path or self.data_dir / "vault"

    @property
    def ledger(self) -> str:
        """The ledger's URL."""
        return self.ledger_url or f"sqlite:///{self.data_dir / 'ledger.db'}"

    @property
    def index_location(self) -> str:
        """Where LanceDB lives."""
        return self.index_uri or str(self.data_dir / "index")

    @property
    def admin_key_path(self) -> Path:
        """The file that holds the first admin key, mode 0600."""
        return self.data_dir / "admin.key"


def default_data_dir() -> Path:
    """The platform's place for application data."""
    return Path(platformdirs.user_data_dir("memory-gateway", appauthor=False))


def load_settings(*, data_dir: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings for a data directory.

    Args:
        data_dir: the data directory; else `MEMORY_GATEWAY_DATA_DIR`, else the platform's data home.
        overrides: settings given on the command line; None means "not given".

    Raises:
        BadSettings: names the setting, where it stands and the accepted values.
    """
    _refuse_unknown_environment()
    chosen = data_dir or Path(os.environ.get(ENV_PREFIX + "DATA_DIR") or default_data_dir())
    chosen = chosen.expanduser().resolve()
    toml = chosen / SETTINGS_FILE
    given = {name: value for name, value in overrides.items() if value is not None}
    source = type(
        "FileSettings", (Settings,), {"toml_path": toml if toml.is_file() else None, "__doc__": Settings.__doc__}
    )
    try:
        return cast("Settings", source(data_dir=chosen, **given))
    except ValidationError as error:
        raise _explain(error, toml, given) from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"The settings file is not valid TOML: {error}.", file=str(toml)) from None
    except ValueError as error:
        raise BadSettings(f"A setting in the environment cannot be read: {error}.") from None


def setting_names() -> list[str]:
    """Dotted names of all settings, for documentation and for suggestions."""
    names: list[str] = []
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Group):
            names.extend(f"{name}.{inner}" for inner in kind.model_fields)
        else:
            names.append(name)
    return names


def _refuse_unknown_environment() -> None:
    known = {ENV_PREFIX + name.upper().replace(".", "__") for name in setting_names()}
    known.add(ENV_PREFIX + "KEY")  # for `memory-gateway mcp`, which is no setting
    groups = {name.split(".", maxsplit=1)[0] for name in setting_names() if "." in name}
    known |= {ENV_PREFIX + name.upper() for name in groups}
    for variable in os.environ:
        if variable.upper().startswith(ENV_PREFIX) and variable.upper() not in known:
            raise BadSettings(
                f"There is no setting for the environment variable {variable}.",
                field=variable,
                advice=_suggest(variable.upper(), sorted(known)),
            )


def _explain(error: ValidationError, toml: Path, given: dict[str, Any]) -> BadSettings:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    variable = ENV_PREFIX + name.upper().replace(".", "__")
    if name in given:
        place = "the command line"
    elif variable in os.environ:
        place = f"the environment variable {variable}"
    else:
        place = str(toml)
    if first["type"] == "extra_forbidden":
        detail = f"There is no setting `{name}` (in {place})."
        return BadSettings(detail, field=name, file=str(toml), advice=_suggest(name, setting_names()))
    detail = f"The setting `{name}` in {place} is wrong: {first['msg']}."
    return BadSettings(detail, field=name, file=place, advice=_accepted(name))


def _accepted(name: str) -> str:
    head, _, tail = name.partition(".")
    field = Settings.model_fields.get(head)
    if field is not None and tail and isinstance(field.annotation, type) and issubclass(field.annotation, Group):
        field = field.annotation.model_fields.get(tail)
    if field is None:
        return "See docs/configuration.md."
    kind: Any = field.annotation  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return f"{field.description or ''} Accepted: {_kind(kind)}.".strip()


def _kind(annotation: Any) -> str:
    values = getattr(annotation, "__args__", None)
    if values and all(isinstance(value, str) for value in values):
        return " | ".join(values)
    return getattr(annotation, "__name__", str(annotation))


def _suggest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean `{close[0]}`?" if close else "See docs/configuration.md for all settings."
