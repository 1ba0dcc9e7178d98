"""What the gateway adapts itself to: the files of agents' sandboxes."""
