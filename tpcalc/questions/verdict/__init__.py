"""Verdicts on training: what is known of sizes, the questions asked of them, the word they make."""
