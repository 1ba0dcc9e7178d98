"""Stands in for the embedding child: crashes, hangs or prints on texts that ask for it."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from gateway.index import embed_child


class Model:
    """Two dimensions: the length of the text, and one."""

    def passage(self, texts: list[str]) -> Any:
        """One row a text, unless one of them is poison."""
        for text in texts:
            if "crash" in text:
                os.kill(os.getpid(), 11)
            if "hang" in text:
                time.sleep(60)
            if "slow" in text:
                time.sleep(0.3)
            if "raise" in text:
                raise ValueError(text)
            if "print" in text:
                os.write(1, b"native code that prints\n")
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    query = passage


embed_child._load = Model
sys.argv[0] = __file__
embed_child.main()
