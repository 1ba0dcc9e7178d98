"""What the product does, a noun each. Functions take the principal and check rights before anything else."""
