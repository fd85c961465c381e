"""Safe semi-supervised learning: what the unlabelled rows did to a class network, and what is guaranteed."""
