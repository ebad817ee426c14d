# Buffered readers beside one who writes directly and asynchronously: when nothing is on its
# way, the readers are given what is on the disk.
import ctypes, mmap, os, platform, random, signal, sys

SIZE, PIECE, DEPTH, ROUNDS = 1 << 20, 64 << 10, 8, 60
PAGE, PWRITE = 4096, 1
path = sys.argv[1]
x86 = platform.machine() == "x86_64"
SETUP, SUBMIT, EVENTS = (206, 209, 208) if x86 else (0, 2, 4)
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *args):
    done = libc.syscall(number, *args)
    if done < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return done

class Iocb(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("opcode", ctypes.c_uint16), ("prio", ctypes.c_int16), ("fd", ctypes.c_uint32),
                ("buf", ctypes.c_uint64), ("nbytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
                ("rest", ctypes.c_uint64 * 2)]

class Event(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("obj", ctypes.c_uint64), ("res", ctypes.c_int64),
                ("res2", ctypes.c_int64)]

with open(path, "wb") as file:
    file.write(bytes(SIZE))
    os.fsync(file.fileno())

def write(direct, offset, round):
    blocks = []
    for i, buffer in enumerate(buffers):
        buffer[:] = bytes([1 + (round * 7 + i) % 250]) * PIECE
        at = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        blocks.append(Iocb(opcode=PWRITE, fd=direct, buf=at, nbytes=PIECE,
                           offset=offset + i * PIECE))
    all = (ctypes.POINTER(Iocb) * DEPTH)(*[ctypes.pointer(block) for block in blocks])
    sent = 0
    while sent < DEPTH:
        rest = ctypes.byref(all, sent * ctypes.sizeof(ctypes.c_void_p))
        sent += call(SUBMIT, context, ctypes.c_long(DEPTH - sent), rest)
    events, count = (Event * DEPTH)(), ctypes.c_long(DEPTH)
    call(EVENTS, context, count, count, events, None)
    assert {event.res for event in events} == {PIECE}, [event.res for event in events]

buffers = [mmap.mmap(-1, PIECE) for _ in range(DEPTH)]
readers = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        # Not left behind if this is killed: PR_SET_PDEATHSIG.
        libc.prctl(1, signal.SIGKILL)
        fd = os.open(path, os.O_RDONLY)
        while True:
            os.pread(fd, PAGE, random.randrange(SIZE // PAGE) * PAGE)
    readers.append(child)

try:
    context = ctypes.c_uint64(0)
    call(SETUP, DEPTH, ctypes.byref(context))
    direct = os.open(path, os.O_RDWR | os.O_DIRECT)
    buffered = os.open(path, os.O_RDONLY)
    disk, stale = mmap.mmap(-1, SIZE), 0
    for round in range(ROUNDS):
        for first in range(0, SIZE // PIECE, DEPTH):
            write(direct, first * PIECE, round)
        assert os.preadv(direct, [disk], 0) == SIZE
        kept = os.pread(buffered, SIZE, 0)
        pages = range(0, SIZE, PAGE)
        stale += sum(kept[at:at + PAGE] != disk[at:at + PAGE] for at in pages)
finally:
    for child in readers:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

sys.exit(f"{stale} pages were not as on the disk" if stale else 0)
