"""The files: safe paths, atomic writes that lose nobody's save, the lock, git. Knows nothing of memories."""
