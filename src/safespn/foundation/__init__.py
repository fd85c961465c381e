"""What every other folder uses: labels, the coding of tables, files, simplex mathematics, draws, randomness."""
