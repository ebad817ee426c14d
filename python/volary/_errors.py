"""What goes wrong, as exceptions."""

from __future__ import annotations

import errno
from typing import Dict, Tuple, Type


class Error(OSError):
    """Why something was not done. ``errno`` is set; ``kind`` is volary's word for it; the text says what was tried, and where::

        try:
            vol.read("/missing")
        except FileNotFoundError as e:
            print(e)            # cannot read disk.img:/missing: no such file or directory
            print(e.kind)       # NotFound
    """

    kind: str = "Io"

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class NotFound(Error, FileNotFoundError):
    """There is no such file or directory."""


class Exists(Error, FileExistsError):
    """The name is taken."""


class NotADirectory(Error, NotADirectoryError):
    """A directory was expected."""


class IsADirectory(Error, IsADirectoryError):
    """A directory, where none can be."""


class NoPermission(Error, PermissionError):
    """The caller may not do this."""


class Interrupted(Error, InterruptedError):
    """The caller lost interest."""


class Busy(Error):
    """In use: another process, or another volume object of this one, has the image open."""


class Corrupt(Error):
    """The volume is damaged; ``volary.check`` says more."""


_EDAMAGED = getattr(errno, "EUCLEAN", errno.EIO)

_KINDS: Dict[str, Tuple[Type[Error], int]] = {
    "NotFound": (NotFound, errno.ENOENT),
    "Exists": (Exists, errno.EEXIST),
    "NotDir": (NotADirectory, errno.ENOTDIR),
    "IsDir": (IsADirectory, errno.EISDIR),
    "NotEmpty": (Error, errno.ENOTEMPTY),
    "Invalid": (Error, errno.EINVAL),
    "NameTooLong": (Error, errno.ENAMETOOLONG),
    "TooManyLinks": (Error, errno.EMLINK),
    "SymlinkLoop": (Error, errno.ELOOP),
    "TooBig": (Error, errno.EFBIG),
    "NoSpace": (Error, errno.ENOSPC),
    "Quota": (Error, errno.EDQUOT),
    "ReadOnly": (Error, errno.EROFS),
    "Access": (NoPermission, errno.EACCES),
    "NotPermitted": (NoPermission, errno.EPERM),
    "Stale": (Error, errno.ESTALE),
    "Locked": (Busy, errno.EBUSY),
    "Deadlock": (Error, errno.EDEADLK),
    "Sharing": (Busy, errno.EBUSY),
    "DeletePending": (Busy, errno.EBUSY),
    "Busy": (Busy, errno.EBUSY),
    "TooManyOpen": (Error, errno.EMFILE),
    "Interrupted": (Interrupted, errno.EINTR),
    "Unsupported": (Error, errno.ENOTSUP),
    "NoXattr": (Error, getattr(errno, "ENODATA", errno.EIO)),
    "CrossVolume": (Error, errno.EXDEV),
    "Io": (Error, errno.EIO),
    "Corrupt": (Corrupt, _EDAMAGED),
}


def of_kind(kind: str, words: str) -> Error:
    """Returns the exception for an error of this kind."""
    cls, number = _KINDS[kind]
    error = cls(number, words)
    error.kind = kind
    return error
