"""The search copy: chunks, tokens and vectors of the notes in LanceDB. Never the truth; one command rebuilds it.

Kept free of imports, so that the embedding child process starts without loading LanceDB.
"""
