"""The command line: parse, make the program, call one function, hand its records to a report."""
