"""Entries of the catalogue, found in the files of their folders, and their exact values."""
