"""Training runs: a network, its parameterization, data, loss, optimizer and schedule.

What has a folder is found there by its file: a complete file for each entry or family.
"""
