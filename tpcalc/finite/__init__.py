"""Networks of finite width: the program at a given n, with matrices formed or revealed lazily."""
