"""What a sum-product network is: nodes, leaf families, validity, and the compiled form."""
