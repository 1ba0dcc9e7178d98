"""The review page: where people decide drafts in a browser, look at memories, and see the gateway's health."""
