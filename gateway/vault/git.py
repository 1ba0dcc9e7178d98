"""Running git for the vault, through GitPython as a process runner with a fixed environment.

GitPython's own index is not used: it commits whatever a person has staged and is an order of magnitude slower.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import git

from gateway.errors import GitTrouble

# Nothing of the repository's or the user's configuration may run code, sign, or rewrite bytes in our own commits.
_ENVIRONMENT = {
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "LC_ALL": "C",
}
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.quotePath=false",
    "core.autocrlf=false",
    "core.fsync=committed,reference",
    "fastimport.unpackLimit=1",
    "log.showSignature=false",
)
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """What a git command said."""

    code: int
    out: bytes
    error: str


class Git:
    """Git in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._git = git.Git(str(folder))
        self._git.update_environment(**_ENVIRONMENT)
        # By name: GitPython runs a command in the process's own folder where the vault's is gone, which may lie in
        # another repository.
        self._prefix = ["git", "-C", str(folder.absolute())]
        for option in (*_OPTIONS, f"safe.directory={folder}"):
            self._prefix += ["-c", option]

    def ignores_folder(self) -> bool:
        """Whether a repository around the folder ignores it. `check-ignore` refuses to take paths literally."""
        with self._git.custom_environment(GIT_LITERAL_PATHSPECS="0"):
            return self.ask("check-ignore", "--quiet", ".").code == 0

    def ask(
        self,
        *arguments: str,
        send: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = _TIMEOUT_SECONDS,
    ) -> GitAnswer:
        """Run a command and return its answer, whatever its exit code.

        Args:
            env: further environment variables.
            timeout: seconds after which the command is killed.
        """
        # A session of its own: a signal to the gateway must not stop git half-way.
        options: dict[str, Any] = {"start_new_session": True}
        with tempfile.TemporaryFile() as stdin:
            if send is not None:
                stdin.write(send)
                stdin.seek(0)
            answer: Any = self._git.execute(  # pyright: ignore[reportUnknownVariableType]
                [*self._prefix, *arguments],
                istream=cast("Any", stdin),
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=timeout,
                env=dict(env or {}),
                **options,
            )
        code, out, error = cast("tuple[int, bytes | str, bytes | str]", answer)
        data = out if isinstance(out, bytes) else out.encode("utf-8", "surrogateescape")
        return GitAnswer(code, data, error if isinstance(error, str) else error.decode("utf-8", "replace"))

    def run(self, *arguments: str, send: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Run a command that must succeed.

        Raises:
            GitTrouble: with git's own words.
        """
        answer = self.ask(*arguments, send=send, env=env)
        if answer.code != 0:
            raise GitTrouble(f"`git {arguments[0]}` failed: {last_line(answer.error)}.")
        return answer.out

    def text(self, *arguments: str) -> str | None:
        """The one-line answer of a command; None when it failed."""
        answer = self.ask(*arguments)
        return answer.out.decode("utf-8", "surrogateescape").rstrip("\n") if answer.code == 0 else None


def config_value(runner: Git, name: str) -> str | None:
    """A value of git's configuration."""
    return runner.text("config", "--get", name)


def split_nul(data: bytes) -> Sequence[bytes]:
    """The fields of a NUL-separated answer."""
    return [field for field in data.split(b"\0") if field]


def last_line(error: str) -> str:
    """The last words of git's complaint, without the credentials of an address."""
    lines = [line for line in error.strip().strip("'").splitlines() if line.strip()]
    words = lines[-1].strip().strip("'") if lines else "no reason given"
    return re.sub(r"//[^/@\s]+@", "//", words)
