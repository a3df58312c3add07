"""The command line: parses, makes the program, calls one question, hands its record to a view."""
