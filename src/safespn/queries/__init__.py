"""What can be asked of a network: completions and samples."""
