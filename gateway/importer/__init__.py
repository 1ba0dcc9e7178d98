"""Files to ledger and index: the only road, for the watcher, the scan, the API and the command line."""
