"""The `handaxe` command and `python -m handaxe`; answers `--version` before anything loads."""

import gc
import sys


def main() -> int:
    """Run the command line and return the exit code."""
    if sys.argv[1:] in (["--version"], ["-v"], ["-V"], ["version"]):
        from handaxe.version import __version__

        return _say(f"{__version__} (handaxe)\n")
    # Nothing that is loaded at the start is garbage; `run` looks for some again.
    gc.disable()
    # msgspec prefers typing_extensions where that happens to be installed, and needs nothing of
    # it on the Pythons we run on; loading it is a tenth of the time a small command takes.
    modules: dict[str, object] = sys.modules  # pyright: ignore[reportAssignmentType]
    modules.setdefault("typing_extensions", None)
    from handaxe.frontends.cli.lazy_imports import enable_lazy_imports

    enable_lazy_imports()
    from handaxe.frontends.cli.main import run

    if modules.get("typing_extensions", sys) is None:
        del modules["typing_extensions"]
    return run(sys.argv[1:])


def _say(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        from handaxe.frontends.cli.stdio import is_output_lost

        if not is_output_lost(error):
            raise
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
