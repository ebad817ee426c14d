"""What the readers in Python share: how a node is listed, and the testkit's digest."""

import hashlib
import stat

KINDS = {
    stat.S_IFREG: "f",
    stat.S_IFDIR: "d",
    stat.S_IFLNK: "l",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "s",
    stat.S_IFCHR: "c",
    stat.S_IFBLK: "b",
}
PART = 64 << 10
ZEROS = bytes(PART)


def digested(read):
    """The testkit's digest of what read(PART) gives."""
    sha, count, length = hashlib.sha256(), 0, 0
    while part := read(PART):
        if part != ZEROS[: len(part)]:
            sha.update(count.to_bytes(8, "little"))
            sha.update(part)
        count, length = count + 1, length + len(part)
    sha.update(length.to_bytes(8, "little"))
    return sha.hexdigest()
