"""A child process that goes on with clear jobs and dies, as by kill -9: `dying.py <data dir> <when> <ms>`.

`when` is `opening` or `clearing`: so long after it began with that; `never` lets it finish.
"""

import os
import sys
import threading
from pathlib import Path

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.workers import jobs
from tests.conftest import IMPATIENT

DIED = 9


def main() -> None:
    data_dir, when = Path(sys.argv[1]), sys.argv[2]
    timer = threading.Timer(int(sys.argv[3]) / 1000, lambda: os._exit(DIED))
    timer.daemon = True
    if when == "opening":
        timer.start()
    gateway = open_gateway(load_settings(data_dir=data_dir, **IMPATIENT))
    if when == "clearing":
        timer.start()
    jobs.run(gateway.parts)
    gateway.settle()
    gateway.close()
    os._exit(0)


if __name__ == "__main__":
    main()
