import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import Busy
from gateway.vault.lock import DirectoryLock, is_locked

HOLD = """
import sys
from pathlib import Path
from gateway.vault.lock import DirectoryLock
held = DirectoryLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_told_who_holds_the_directory_and_gets_it_when_that_one_is_killed(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"held"
        with pytest.raises(Busy, match=str(holder.pid)):
            DirectoryLock(tmp_path)
        assert is_locked(tmp_path)
        holder.kill()
        holder.wait()
    lock = DirectoryLock(tmp_path)
    assert is_locked(tmp_path)
    lock.close()
    assert not is_locked(tmp_path)
