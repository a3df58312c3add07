"""Program to Program: a pass, or passes of one kind, a file, named by what it does."""
