"""Whether this is the long run of the night: `MEMORY_GATEWAY_NIGHTLY=1`."""

import os

# Taken out of the environment at once: the gateway refuses settings that it does not know.
NIGHTLY = os.environ.pop("MEMORY_GATEWAY_NIGHTLY", "") == "1"
