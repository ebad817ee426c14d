# Runs a program at a terminal, and prints what is seen there. At the end of the words after --, if any, it is
# told to stop, as by Ctrl-C.
import os, pty, select, signal, sys, time

program, words = sys.argv[1:sys.argv.index('--')], sys.argv[sys.argv.index('--') + 1:]
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
    elif words and seen.endswith(words[0].encode()):
        words.pop()
        os.kill(pid, signal.SIGINT)
else:
    os.kill(pid, signal.SIGKILL)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
