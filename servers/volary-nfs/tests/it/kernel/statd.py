"""A portmapper and status monitor for the guest, whose kernel wants both before it
locks anything. They agree to all that it asks; of a restart of the host (SM_NOTIFY) it
is told as it asked to be (SM_MON). The one argument is the port of its lock manager."""

import socket
import struct
import sys
import threading

PORTMAP, NSM, NLM = 100000, 100024, 100021
MON, NOTIFY, GETPORT = 2, 6, 3
lock_manager = int(sys.argv[1])
monitored = []


def words(count, data):
    return struct.unpack(f'>{count}I', data[:4 * count]), data[4 * count:]


def text(data):
    (length,), data = words(1, data)
    return data[:length], data[(length + 3) & ~3:]


def opaque(data):
    return struct.pack('>I', len(data)) + data + bytes(-len(data) % 4)


def send(to, record):
    to.sendall(struct.pack('>I', len(record) | 1 << 31) + record)


def receive(of):
    mark = of.recv(4, socket.MSG_WAITALL)
    if len(mark) < 4:
        return None
    return of.recv(struct.unpack('>I', mark)[0] & 0x7fffffff, socket.MSG_WAITALL)


def mon(arguments):
    name, rest = text(arguments)
    _, rest = text(rest)
    whom, rest = words(3, rest)
    monitored.append((name, whom, rest[:16]))


def notify(arguments):
    """The kernel listens to this machine's root only. The host calls itself by an
    address that it does not have here; there is no other."""
    _, rest = text(arguments)
    (state,), _ = words(1, rest)
    for name, whom, private in monitored:
        call = struct.pack('>10I', 1, 0, 2, *whom, 0, 0, 0, 0)
        with socket.socket() as kernel:
            kernel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kernel.bind(('127.0.0.1', 1001))
            kernel.connect(('127.0.0.1', lock_manager))
            send(kernel, call + opaque(name) + struct.pack('>I', state) + private)
            receive(kernel)


def answer(call):
    (xid, _, _, program, _, procedure), rest = words(6, call)
    for _ in range(2):
        (_,), rest = words(1, rest)
        _, rest = text(rest)
    head = struct.pack('>6I', xid, 1, 0, 0, 0, 0)
    if (program, procedure) == (NSM, MON):
        mon(rest)
        return head + struct.pack('>2I', 0, 1)
    if (program, procedure) == (NSM, NOTIFY):
        notify(rest)
        return head
    if (program, procedure) == (PORTMAP, GETPORT):
        (wanted,), _ = words(1, rest)
        return head + struct.pack('>I', lock_manager if wanted == NLM else 111)
    return head + (struct.pack('>I', 1) if procedure else b'')


def serve(client):
    while call := receive(client):
        send(client, answer(call))


def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as of:
        of.bind(('127.0.0.1', 111))
        while True:
            call, peer = of.recvfrom(4096)
            of.sendto(answer(call), peer)


threading.Thread(target=datagrams, daemon=True).start()
with socket.socket() as listener:
    listener.bind(('0.0.0.0', 111))
    listener.listen()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
