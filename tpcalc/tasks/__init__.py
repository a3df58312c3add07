"""Many independent tasks: here, in processes, or on a cluster, with the same bits."""
