"""Learning the parameters and the structure of networks."""
