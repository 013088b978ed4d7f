"""The data of Bash."""

from typing import Annotated, Literal, TypedDict


class SandboxData(TypedDict):
    """How the command was sandboxed."""

    means: Literal["bubblewrap", "landlock", "none"]
    network: Literal["off", "listed", "open"]
    files: Annotated[Literal["roots", "open"], "`roots`: only the working directories."]
    notes: Annotated[list[str], "Requested restrictions that are not in effect."]


class BashDetails(TypedDict, total=False):
    """Data for some commands: ended, too long, in the background, or a dry run."""

    shownRanges: Annotated[list[list[int]], "First and last line of each piece in `stdout`."]
    rawOutputPath: Annotated[str, "A file with the output."]
    exitCode: Annotated[int | None, "Once it has ended."]
    durationMs: float
    signal: int
    returnCodeInterpretation: Annotated[str, "Meaning of a nonzero exit code that is not an error."]
    persistedOutputPath: Annotated[str, "A file with output that was too long to show."]
    persistedOutputSize: int
    timedOutAfterMs: int
    backgroundTaskId: Annotated[str, "It continues in the background; pass this id to TaskOutput."]
    backgroundCwdHint: str
    sandbox: SandboxData
    dryRun: Annotated[bool, "True: it was a dry run."]
    changedFiles: Annotated[list[str], "Dry run: files whose content would change."]
    otherChanges: Annotated[list[str], "Dry run: other changes, as sentences."]
    leftOut: Annotated[list[str], "Dry run: paths that were not compared."]


class BashData(BashDetails):
    """The result of Bash."""

    stdout: Annotated[str, "Both output streams in order; may lack the middle."]
    stderr: Annotated[str, "Notices of the tool."]
    interrupted: bool
    cwd: Annotated[str, "The directory it ran in."]
    nextCwd: Annotated[str, "The directory of the next command."]
    totalBytes: int
    totalLines: int
