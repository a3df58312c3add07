"""Training runs: a network, its parameterization, data, loss, optimizer and schedule.

What has a folder is found there by its file: one complete file for each entry.
"""
