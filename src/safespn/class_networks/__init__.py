"""Class networks: families of networks with one child per class, and the committee that weighs them."""
