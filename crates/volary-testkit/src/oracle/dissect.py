"""Prints all that UFS images hold, as dissect.ffs reads them: a line for each image, then one for each node."""

import stat
import sys

from dissect.ffs import FFS


def digest(node):
    if not (node.is_file() or node.is_symlink()):
        return "-"
    return digested(node.open().read)


def walk(directory, path):
    for node in directory.iterdir():
        if node.inum == 0 or node.name in (".", ".."):
            continue
        inode, below = node.inode, path + [node.name]
        kind = stat.S_IFMT(inode.di_mode)
        if node.type != kind:
            sys.exit(f"{below}: the entry says {node.type:o}, the inode {inode.di_mode:o}")
        size = node.size if kind == stat.S_IFREG else 0
        name = "/".join(below).encode(errors="surrogateescape").hex()
        owner = f"{stat.S_IMODE(inode.di_mode):o} {inode.di_uid} {inode.di_gid}"
        print("N", KINDS[kind], owner, inode.di_nlink, size, node.mtime_ns, digest(node), name)
        if kind == stat.S_IFDIR:
            walk(node, below)


for image in sys.argv[1:]:
    with open(image, "rb") as stream:
        print("I", image)
        walk(FFS(stream).root, [])
