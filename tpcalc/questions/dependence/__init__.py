"""What the variables of a limit graph depend on."""
