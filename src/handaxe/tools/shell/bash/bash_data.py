"""What Bash gives as data."""

from typing import Annotated, Literal, TypedDict


class SandboxData(TypedDict):
    """How the command was kept apart from the machine."""

    means: Literal["bubblewrap", "landlock", "none"]
    network: Literal["off", "listed", "open"]
    files: Annotated[Literal["roots", "open"], "`roots`: only the working directories."]
    notes: Annotated[list[str], "What was asked for and does not hold."]


class BashDetails(TypedDict, total=False):
    """What some commands have: ended, too long, in the background, only tried."""

    shownRanges: Annotated[list[list[int]], "First and last line of each piece in `stdout`."]
    rawOutputPath: Annotated[str, "A file with the output."]
    exitCode: Annotated[int | None, "Once it has ended."]
    durationMs: float
    signal: int
    returnCodeInterpretation: Annotated[str, "What an exit code above zero means that is fine."]
    persistedOutputPath: Annotated[str, "A file with output that was too long to be shown."]
    persistedOutputSize: int
    timedOutAfterMs: int
    backgroundTaskId: Annotated[str, "It goes on in the background; TaskOutput takes this id."]
    backgroundCwdHint: str
    sandbox: SandboxData
    dryRun: Annotated[bool, "True: it was only tried."]
    changedFiles: Annotated[list[str], "Of a trial: files whose content would change."]
    otherChanges: Annotated[list[str], "Of a trial: other changes, as sentences."]
    leftOut: Annotated[list[str], "Of a trial: paths that were not looked at."]


class BashData(BashDetails):
    """What Bash gives."""

    stdout: Annotated[str, "What it printed, both streams in order; perhaps only both ends."]
    stderr: Annotated[str, "Notices of the tool."]
    interrupted: bool
    cwd: Annotated[str, "Where it ran."]
    nextCwd: Annotated[str, "Where the next command runs."]
    totalBytes: int
    totalLines: int
