"""The rows that a class network learns from, wherever they are: in memory, or in partitions of Dask collections."""
