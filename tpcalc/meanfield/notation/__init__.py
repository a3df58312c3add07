"""Networks written line by line, one layer a line, and architectures that write such lines."""
