"""Prints all that the volumes on a disk hold, as Linux reads them: a line for each volume, then one for each node.

Arguments: the disk; a place to mount at; then of each volume its offset and length, type and options.
"""

import ctypes
import fcntl
import io
import os
import stat
import struct
import sys

LOOP, LOOP_CONFIGURE, LOOP_CLR_FD, LO_FLAGS_READ_ONLY = "/dev/loop0", 0x4C0A, 0x4C01, 1
MS_RDONLY = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def configuration(disk, offset, length):
    """A struct loop_config."""
    info = struct.pack("=5Q4I", 0, 0, 0, offset, length, 0, 0, 0, LO_FLAGS_READ_ONLY).ljust(232, b"\0")
    return struct.pack("=2I", disk, 512) + info + bytes(64)


def digest(path, kind):
    if kind == stat.S_IFLNK:
        return digested(io.BytesIO(os.readlink(path)).read)
    if kind != stat.S_IFREG:
        return "-"
    with open(path, "rb") as stream:
        return digested(stream.read)


def walk(top, below):
    for name in os.listdir(os.path.join(top, below)):
        path = os.path.join(below, name)
        full = os.path.join(top, path)
        node = os.lstat(full)
        kind = stat.S_IFMT(node.st_mode)
        size = node.st_size if kind == stat.S_IFREG else 0
        owner = f"{stat.S_IMODE(node.st_mode):o} {node.st_uid} {node.st_gid}"
        print("N", KINDS[kind], owner, node.st_nlink, size, node.st_mtime_ns, digest(full, kind), path.hex())
        if kind == stat.S_IFDIR:
            walk(top, path)


def show(disk, place, offset, length, kind, options):
    with open(LOOP, "rb") as loop:
        fcntl.ioctl(loop, LOOP_CONFIGURE, configuration(disk, int(offset), int(length)))
        mounted = LIBC.mount(LOOP.encode(), place.encode(), kind.encode(), MS_RDONLY, options.encode())
        must(mounted, f"the {kind} at {offset}, with {options}")
        print("I", offset)
        walk(place.encode(), b"")
        must(LIBC.umount(place.encode()), "umount")
        fcntl.ioctl(loop, LOOP_CLR_FD)


def main(disk, place, *volumes):
    os.makedirs(place, exist_ok=True)
    with open(disk, "rb") as stream:
        for at in range(0, len(volumes), 4):
            show(stream.fileno(), place, *volumes[at : at + 4])


main(*sys.argv[1:])
