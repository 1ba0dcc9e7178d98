"""The structured memories of a user, as seed 001 lays them down: about the person, and about their work.

Field names, nulls and lists are the seed's. People write these too, by hand: numbers are taken where text is meant.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

_TIME = r"^(?:[01]\d|2[0-3]):[0-5]\d$"
_END = r"^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$"
MAX_ITEMS = 500
# A day of the week by number or by name; kept as it was given.
Weekday: TypeAlias = (
    Annotated[int, Field(strict=True, ge=0, le=7)]
    | Annotated[str, Field(min_length=1, max_length=20, pattern=r"^\D+$")]
)
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    @field_validator("name", mode="after", check_fields=False)
    @classmethod
    def _named(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _writable(cls, value: object) -> object:
        """Refuse what no note can hold: half characters and NUL."""
        for text in value if isinstance(value, list | tuple) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if isinstance(text, str) and ("\0" in text or any("\ud800" <= char <= "\udfff" for char in text)):
                raise ValueError("holds a NUL or half a character")
        return value  # pyright: ignore[reportUnknownVariableType]


class Meta(_Part):
    """Where an item comes from, how sure it is, and when it last changed."""

    source: str | None = None
    confidence: float | None = Field(None, ge=0, le=1)
    last_updated_at: datetime | None = None


class TimeWindow(_Part):
    """A stretch of the day on some days of the week; without days, on all of them."""

    weekdays: tuple[Weekday, ...] = Field((), max_length=14)
    start: str = Field(pattern=_TIME)
    end: str = Field(pattern=_END)


Windows: TypeAlias = Annotated[tuple[TimeWindow, ...], Field(max_length=MAX_ITEMS)]
Texts: TypeAlias = Annotated[tuple[str, ...], Field(max_length=MAX_ITEMS)]


class Person(_Part):
    """Somebody the user knows."""

    name: Name
    relationship: str | None = None
    role: str | None = None
    preferred_contact_channel: str | None = None
    notes: str | None = None
    meta: Meta = Field(default_factory=lambda: Meta.model_validate({}))


class Place(_Part):
    """A place of the user's life."""

    name: Name
    category: str | None = None
    address: str | None = None
    timezone: str | None = None
    commute_minutes: Count | None = None
    preference: Literal["like", "neutral", "avoid"] | None = None
    notes: str | None = None
    meta: Meta = Field(default_factory=lambda: Meta.model_validate({}))


class Preferences(_Part):
    """How the user likes to be talked to and to live."""

    communication_style: str | None = None
    language_preference: Texts = ()
    location_preference: str | None = None
    work_lifestyle: str | None = None
    notification_preference: Texts = ()


class SchedulingPreferences(_Part):
    """When the user is to be reached, and when not."""

    productive_windows: Windows = ()
    preferred_meeting_windows: Windows = ()
    no_meeting_windows: Windows = ()
    deep_work_windows: Windows = ()
    preferred_meeting_duration_minutes: tuple[Count, ...] = Field((), max_length=MAX_ITEMS)
    meeting_buffer_minutes: Count | None = None
    max_meetings_per_day: Count | None = None
    notes: str | None = None


def _scheduling() -> SchedulingPreferences:
    return SchedulingPreferences.model_validate({})


class Routine(_Part):
    """Something the user does again and again."""

    name: Name
    description: str | None = None
    cadence: str | None = None
    time_windows: Windows = ()
    importance: str | None = None
    meta: Meta = Field(default_factory=lambda: Meta.model_validate({}))


class UserMemoryContent(_Part):
    """About the person (seed 001)."""

    occupation: str | None = None
    timezone: str | None = None
    primary_language: str | None = None
    people: tuple[Person, ...] = Field((), max_length=MAX_ITEMS)
    places: tuple[Place, ...] = Field((), max_length=MAX_ITEMS)
    preferences: Preferences = Field(default_factory=lambda: Preferences.model_validate({}))
    scheduling_preferences: SchedulingPreferences = Field(default_factory=_scheduling)
    interests: Texts = ()
    avoid_topics: Texts = ()
    custom_rules: Texts = ()
    recurring_routines: tuple[Routine, ...] = Field((), max_length=MAX_ITEMS)


class Milestone(_Part):
    """A mark on the way of a project."""

    name: Name
    due_date: date | None = None
    status: str | None = None
    notes: str | None = None


class Project(_Part):
    """What the user works on."""

    name: Name
    description: str | None = None
    status: Literal["planned", "active", "paused", "completed"] | None = None
    priority: str | None = None
    deadline: date | None = None
    collaborators: Texts = ()
    key_milestones: tuple[Milestone, ...] = Field((), max_length=MAX_ITEMS)
    notes: str | None = None
    meta: Meta = Field(default_factory=lambda: Meta.model_validate({}))


class WorkHabits(_Part):
    """When and how the user works."""

    available_hours: Windows = ()
    deep_work_blocks: Windows = ()
    preferred_meeting_windows: Windows = ()
    no_meeting_windows: Windows = ()
    preferred_meeting_duration_minutes: tuple[Count, ...] = Field((), max_length=MAX_ITEMS)
    notification_channel: str | None = None
    notes: str | None = None


class TeamMember(_Part):
    """Somebody the user works with."""

    name: Name
    role: str | None = None
    relationship: str | None = None
    preferred_contact_channel: str | None = None
    notes: str | None = None
    meta: Meta = Field(default_factory=lambda: Meta.model_validate({}))


class WorkProfileContent(_Part):
    """About the user's work (seed 001)."""

    occupation: str | None = None
    expertise: Texts = ()
    preferred_tools: Texts = ()
    current_projects: tuple[Project, ...] = Field((), max_length=MAX_ITEMS)
    work_habits: WorkHabits = Field(default_factory=lambda: WorkHabits.model_validate({}))
    team_members: tuple[TeamMember, ...] = Field((), max_length=MAX_ITEMS)
    team_context: str | None = None
    work_rules: Texts = ()


Content: TypeAlias = UserMemoryContent | WorkProfileContent
