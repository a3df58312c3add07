"""Program to Program: one pass, one file, named by what it does."""
