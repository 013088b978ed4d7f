"""The `handaxe` command and `python -m handaxe`; answers `--version` before anything loads."""

import sys


def main() -> int:
    """Run the command line; the exit code."""
    if sys.argv[1:] in (["--version"], ["-v"], ["-V"]):
        from handaxe import __version__

        sys.stdout.write(f"{__version__} (handaxe)\n")
        return 0
    from handaxe.frontends.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
