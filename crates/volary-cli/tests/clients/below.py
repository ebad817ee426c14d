# Mounts /dev/vda in a guest, with the host's programs around it, and reads its files by `volary bulk` from the
# block device, while they are mounted: at rest, and while a process writes them.
import ctypes, fcntl, hashlib, io, json, os, struct, subprocess, sys, tarfile, threading, time

VOLARY, AT = sys.argv[1], '/tmp/mnt'
JOURNAL_DATA = 0x4000
# Files that are written while others are read, and runs meanwhile.
WRITTEN, RUNS = 24, 4
# Descriptors.
OPEN = []


def run(*args, code=0):
    done = subprocess.run([VOLARY, 'bulk', *args], capture_output=True)
    assert done.returncode == code, (args, done)
    return done.stdout, done.stderr.decode()


def mount(options='rw'):
    subprocess.run(['mount', '-t', 'ext4', '-o', options, '/dev/vda', AT], check=True)


def write(name, content):
    fd = os.open(f'{AT}/{name}', os.O_RDWR | os.O_CREAT)
    OPEN.append(fd)
    os.pwrite(fd, content, 0)
    os.fsync(fd)
    return fd


def unmount():
    while OPEN:
        os.close(OPEN.pop())
    subprocess.run(['umount', AT], check=True)


def forgotten():
    os.sync()
    with open('/proc/sys/vm/drop_caches', 'w') as to:
        to.write('3')


def later():
    # What has just changed is read through the file system: the clock goes on for it.
    time.clock_settime(time.CLOCK_REALTIME, time.time() + 60)


def tree():
    for i in range(60):
        os.makedirs(f'{AT}/d{i % 7}', exist_ok=True)
        write(f'd{i % 7}/f{i}', hashlib.sha256(b'%d' % i).digest() * (i * 29))
    # Two files whose fragments alternate, holes, room without content, a file in the journal.
    both = [write(name, b'') for name in ('a', 'b')]
    for i in range(12):
        for fd in both:
            os.pwrite(fd, b'%d%d' % (fd, i) * 1000, i * 8192)
            os.fsync(fd)
    os.pwrite(write('hole', b'begin'), b'end', 300_000)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.fallocate(write('room', b'first'), 1, 0, ctypes.c_long(200_000)) == 0
    os.ftruncate(write('room', b''), 100_000)
    fd = write('journalled', b'')
    flags = struct.unpack('l', fcntl.ioctl(fd, 0x80086601, bytes(8)))[0]
    fcntl.ioctl(fd, 0x40086602, struct.pack('l', flags | JOURNAL_DATA))
    os.pwrite(fd, b'journal' * 1000, 0)
    os.fsync(fd)


def sums():
    names = [os.path.join(dir, name) for dir, _, names in os.walk(AT) for name in names]
    return {name[len(AT):]: hashlib.sha256(open(name, 'rb').read()).hexdigest() for name in names}


def told(out):
    lines = [line.split('  ', 1) for line in out.decode().splitlines()]
    return {name.removeprefix(AT): digest for digest, name in lines}


def at_rest():
    expected = sums()
    later()
    forgotten()
    out, summary = run('--sha256', '--summary', '-o', 'raw=always', AT)
    assert told(out) == expected, set(told(out).items()) ^ set(expected.items())
    ways = {}
    for line in run('--json', '--sha256', '-o', 'raw=always', AT)[0].splitlines():
        event = json.loads(line)
        if 'way' in event:
            ways[event['path'].removeprefix(AT)] = event['way']
    # The second time, the host has read nothing: it is not in the page cache.
    assert ways['/journalled'] == 'ordinary', ways
    assert ways['/a'] == ways['/b'] == ways['/hole'] == ways['/room'] == 'assembled', ways
    assert sum(way != 'ordinary' for way in ways.values()) >= 60, ways
    # What is in the page cache is not read again.
    sums()
    out, summary = run('--sha256', '--summary', '-o', 'raw=always', AT)
    assert told(out) == expected and ' 0 of 0 bytes' in summary, summary
    print('at rest: as the kernel reads it')


def not_yet_there():
    # A page of many, in the page cache alone.
    fd = write('dirty', b'old' * 100_000)
    forgotten()
    os.pwrite(fd, b'new', 0)
    later()
    out, _ = run('--sha256', '-o', 'raw=always', AT)
    assert told(out)['/dirty'] == hashlib.sha256(b'new' + b'old' * 99_999).hexdigest()


def writer(stop, complete):
    # Each write gives a file one number all over, and the length that goes with it.
    fds = [write(f'w{i}', b'') for i in range(WRITTEN)]
    number = 0
    while not stop.is_set():
        number += 1
        i = number % WRITTEN
        words = 2048 + number % 3 * 512
        os.pwrite(fds[i], struct.pack('<Q', number) * words, 0)
        os.ftruncate(fds[i], 8 * words)
        if number % 5 == 0:
            os.fdatasync(fds[i])
        if number % 97 == 0:
            old, new = f'{AT}/d{number % 7}/f{number % 60}', f'{AT}/d{(number + 1) % 7}/g{number}'
            if os.path.exists(old):
                os.replace(old, new)
        complete[i] = number


def written():
    stop, complete = threading.Event(), {}
    thread = threading.Thread(target=writer, args=(stop, complete))
    thread.start()
    while len(complete) < WRITTEN:
        time.sleep(0.01)
    seen = 0
    for _ in range(RUNS):
        later()
        forgotten()
        before = dict(complete)
        done = subprocess.run([VOLARY, 'bulk', '--tar', '-', '-o', 'raw=always', AT], capture_output=True)
        # A file that is renamed or written all the time may be told of as such.
        assert done.returncode in (0, 1), done.stderr
        archive = tarfile.open(fileobj=io.BytesIO(done.stdout))
        for member in archive:
            name = os.path.basename(member.name)
            if not member.isfile() or name[0] != 'w':
                continue
            content = archive.extractfile(member).read()
            numbers = set(struct.unpack(f'<{len(content) // 8}Q', content[:len(content) // 8 * 8]))
            # Nothing older than what was written when the run began.
            assert min(numbers) >= before[int(name[1:])], (name, numbers, before)
            seen += 1
    stop.set()
    thread.join()
    assert seen > 0
    later()
    forgotten()
    out, _ = run('--sha256', '-o', 'raw=always', AT)
    assert told(out) == sums()
    print('while it is written: nothing of before')


def main():
    os.makedirs(AT, exist_ok=True)
    mount()
    tree()
    at_rest()
    not_yet_there()
    written()
    unmount()
    mount('rw,data=journal')
    _, words = run('-o', 'raw=always', AT, code=3)
    assert 'does not tell where' in words, words
    run('--null', AT)
    unmount()
    print('a journal of data: refused')


main()
