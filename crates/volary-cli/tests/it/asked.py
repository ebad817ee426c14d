# Runs a program at a terminal, and writes an answer each time it asks: without seeing it.
import os, pty, select, sys, termios, time

program, answers = sys.argv[1:sys.argv.index('--')], sys.argv[sys.argv.index('--') + 1:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(program[0], program)
seen, end = b'', time.monotonic() + 60
while time.monotonic() < end:
    if select.select([fd], [], [], 0.01)[0]:
        try:
            some = os.read(fd, 4096)
        except OSError:
            some = b''
        if not some:
            break
        seen += some
    elif answers and seen.endswith(b': ') and not termios.tcgetattr(fd)[3] & termios.ECHO:
        os.write(fd, answers.pop(0).encode() + b'\n')
        seen += b'|'
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
