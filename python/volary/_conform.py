"""The conformance suite on drivers in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence

from . import _volary
from ._driver import ReadOnly, _Tree
from ._types import Path, encoded


@dataclass(frozen=True)
class CaseFailure:
    """A case that did not hold."""

    case: str
    what: str
    #: What a driver promises, in the words of the contract.
    contract: str
    #: The last operations before, from the oldest on.
    operations: List[str]

    def __str__(self) -> str:
        done = "".join(f"\n    {operation}" for operation in self.operations)
        return f"{self.case}: {self.what}\n  the contract: {self.contract}\n  the last operations:{done}"


@dataclass(frozen=True)
class ConformReport:
    """What a run of the suite came to. It is true if every case that ran held."""

    passed: List[str]
    #: Cases that could not run, and why.
    skipped: Dict[str, str]
    failed: List[CaseFailure]

    def __bool__(self) -> bool:
        return not self.failed


def conform(
    make: Callable[[], ReadOnly],
    *,
    tree: Optional[Path] = None,
    compare: Sequence[str] = (),
    only: Optional[str] = None,
    limit: float = 60,
    everywhere: bool = False,
    check: bool = True,
) -> ConformReport:
    """Holds a driver to what volumes promise: paths, bytes at every kind of offset, links, listings, stale files, refusals::

        def test_my_driver(tmp_path):
            volary.write_reference(tmp_path)
            volary.conform(lambda: MyFS(tmp_path), tree=tmp_path)

    ``make`` gives a new driver for each case. ``tree`` is a directory that holds what the volume should;
    :func:`write_reference` writes one that has every kind of name and size. Of attributes, those in ``compare`` count as
    well: ``"modes"``, ``"owners"``, ``"times"``. Without a ``tree`` all ways of reading what the volume holds must agree.
    ``limit`` is the time of a case in seconds; ``only`` is one to run alone. With ``everywhere``, the volume is held to it
    under each layer that should not be noticed as well, and through FUSE, NFS and SMB: the cases are then called by the
    way too. Raises ``AssertionError`` with what was wrong,
    unless ``check`` is false.
    """
    unknown = set(compare) - {"modes", "owners", "times"}
    if unknown:
        raise ValueError(f"nothing to compare: {', '.join(sorted(unknown))}")
    how = {
        "name": getattr(make, "__name__", "driver"),
        "tree": None if tree is None else encoded(tree),
        "compare": list(compare),
        "only": only,
        "limit": limit,
        "everywhere": everywhere,
    }
    passed, skipped, failed = _volary.conform(lambda: _Tree(make()), how)
    report = ConformReport(passed, dict(skipped), [CaseFailure(*one) for one in failed])
    if only is not None and not (passed or skipped or failed):
        raise ValueError(f"there is no case {only!r}")
    if check and not report:
        raise AssertionError("\n".join(str(one) for one in report.failed))
    return report


def write_reference(dir: Path) -> None:
    """Writes a tree with every kind of name and size into a directory, for :func:`conform`."""
    _volary.write_reference(encoded(dir))
