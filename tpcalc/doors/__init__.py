"""What comes in from outside, and what goes out: numbers, files, arrays, places, sizes."""
