"""What ripgrep found, confirmed: each file was the one that was judged, or is searched again.

Files that may have been others meanwhile are opened so that no link is followed, and ripgrep
searches the open files. What that does not confirm is dropped without a word: a word would say
that something outside fits the pattern.
"""

from collections.abc import Callable, Iterable, Sequence

from handaxe.search.rg.matched_files__held_files import AT_A_TIME, HeldFiles
from handaxe.search.rg.rg_process import Feed, RipgrepProcess
from handaxe.search.rg_arguments import RipgrepOptions
from handaxe.search.rg_output import CountStream, Take
from handaxe.search.walk.root import SearchPlace
from handaxe.search.walk.unchanged_paths import UnchangedPaths

OpenHeld = Callable[[Feed, RipgrepOptions, HeldFiles], RipgrepProcess]
OpenHeldLines = Callable[[Take, HeldFiles], RipgrepProcess]


class MatchConfirmation:
    """For one run or some runs that begin now."""

    def __init__(self, place: SearchPlace, *, is_file: bool) -> None:
        self._place = place
        self._is_file = is_file
        self._unchanged = UnchangedPaths(place.fd)
        self.is_complete = True
        """False if time ran out before everything was confirmed."""

    def unsure(self, paths: Iterable[bytes]) -> list[bytes]:
        """Those paths that may have stood for other files."""
        return self._unchanged.unsure(paths, are_named=self._is_file)

    def find_moving(self, directories: Iterable[bytes]) -> set[bytes]:
        """Those directories whose files have to be looked at one by one."""
        found = set(directories)
        return found if self._is_file else self._unchanged.find_moving(found)

    def counts(
        self, paths: Sequence[bytes], manner: RipgrepOptions, open_run: OpenHeld
    ) -> dict[bytes, int]:
        """The numbers of matching lines of those files that have some."""
        counts: dict[bytes, int] = {}
        for at in range(0, len(paths), AT_A_TIME):
            with HeldFiles(self._place.fd, paths[at : at + AT_A_TIME]) as held:

                def take(pairs: list[tuple[bytes, int]], held: HeldFiles = held) -> bool:
                    counts.update((held.get_path(target), count) for target, count in pairs)
                    return False

                feed = CountStream(take).feed
                self._finish(held, lambda held, feed=feed: open_run(feed, manner, held))
        return counts

    def bodies(self, paths: Sequence[bytes], open_run: OpenHeldLines) -> dict[bytes, bytes]:
        """The lines to show of each file; none for those that have none."""
        parts: dict[bytes, list[bytes]] = {path: [] for path in paths}
        for at in range(0, len(paths), AT_A_TIME):
            with HeldFiles(self._place.fd, paths[at : at + AT_A_TIME]) as held:

                def take(target: bytes, body: bytes, held: HeldFiles = held) -> bool:
                    parts[held.get_path(target)].append(body)
                    return False

                self._finish(held, lambda held, take=take: open_run(take, held))
        return {path: b"".join(bodies) for path, bodies in parts.items()}

    def _finish(self, held: HeldFiles, open_run: Callable[[HeldFiles], RipgrepProcess]) -> None:
        if not held.targets:
            return
        run = open_run(held)
        try:
            if run.go() == "out_of_time":
                self.is_complete = False
        finally:
            run.end()
