"""``python -m tpcalc``."""

from tpcalc.cli.app import main

if __name__ == "__main__":
    main()
