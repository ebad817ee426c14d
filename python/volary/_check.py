"""New volumes, and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional

from . import _volary
from ._types import Path, Size, bytes_of, decoded, encoded
from ._volume import _how


def mkfs(
    path: Path,
    kind: str,
    size: Size = 0,
    *,
    label: Optional[str] = None,
    options: str = "",
    seed: Optional[int] = None,
    overwrite: bool = False,
) -> None:
    """Makes an image of ``size`` bytes (``"64M"``) and a new volume on it.

    ``kind`` is one that ``volary formats`` lists: ``"fat32"``, ``"ffs2"``, ``"cedar"``. What is there already is left alone,
    unless ``overwrite``: then all on it is lost, and a block device or a partition needs no ``size``. With a ``seed`` the
    random parts (a serial number) are made from it::

        volary.mkfs("disk.img", "fat32", "64M", label="PHOTOS")
    """
    making = {"label": label, "options": options, "seed": seed, "overwrite": overwrite}
    _volary.make(encoded(path), kind, bytes_of(size), making)


@dataclass(frozen=True)
class Finding:
    """Something that a check found."""

    #: A stable word: ``cross-link``.
    code: str
    #: ``note`` (nothing is wrong), ``crash`` (a power cut can leave it), ``damage``.
    severity: str
    #: The file or directory concerned.
    path: Optional[str]
    #: Where on the device, in bytes.
    offset: Optional[int]
    message: str
    #: What mending does; empty if nothing can be done.
    repair: str


@dataclass(frozen=True)
class CheckResult:
    """What a check told. It is true if nothing is wrong, or nothing any more."""

    found: int
    mended: int
    findings: List[Finding]
    #: Figures and words: files, directories, free space.
    facts: Dict[str, str]

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong, or nothing any more."""
        return self.found <= self.mended

    def __bool__(self) -> bool:
        return self.clean


def check(
    path: Path, repair: bool = False, *, kind: Optional[str] = None, options: str = ""
) -> CheckResult:
    """Checks a volume that nobody has open; with ``repair`` mends it too::

        result = volary.check("disk.img")
        if not result.clean:
            for finding in result.findings:
                print(finding.path, finding.message)
    """
    how = _how(kind, (), options, None, None, None)
    found, mended, findings, facts = _volary.check(encoded(path), "mend" if repair else "look", how)
    told = [
        Finding(code, severity, None if at is None else decoded(at), offset, message, mending)
        for code, severity, at, offset, message, mending in findings
    ]
    return CheckResult(found, mended, told, dict(facts))
