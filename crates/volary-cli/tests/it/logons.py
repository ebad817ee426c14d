# Logons by impacket, from the addresses of this host that a test names.
import socket, sys, threading, time
from impacket.smbconnection import SMBConnection, SessionError
from impacket.smb3structs import SMB2_DIALECT_002, SMB2_DIALECT_21, SMB2_DIALECT_311

DENIED, LOGON_FAILURE = 0xC0000022, 0xC000006D


class From(socket.socket):
    """A socket that connects from this address."""
    address = threading.local()

    def connect(self, at):
        self.bind((getattr(From.address, 'text', '127.0.0.1'), 0))
        super().connect(at)


socket.socket = From


def connect(port, address='127.0.0.1', dialect=None):
    From.address.text = address
    return SMBConnection('127.0.0.1', '127.0.0.1', sess_port=int(port), preferredDialect=dialect)


def guess(connection, user, password='wrong'):
    """A logon that fails; the connection can be used for another."""
    try:
        connection.login(user, password)
    except SessionError as e:
        assert e.getErrorCode() == LOGON_FAILURE, hex(e.getErrorCode())
    else:
        raise AssertionError('logged on')
    connection.getSMBServer()._Session['SessionID'] = 0


def log_on(port, user='me', address='127.0.0.1', dialect=None):
    connection = connect(port, address, dialect)
    connection.login(user, 'password')
    return connection


def timed(call):
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def guesses_by_one(port, count):
    connection = connect(port)
    for _ in range(count):
        guess(connection, 'me')


def guesses_by_many(port, count):
    connections = [connect(port) for _ in range(count)]
    threads = [threading.Thread(target=guess, args=(c, 'me')) for c in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def guesses(first, second):
    """Four guesses by one connection and by four cost 0.5, 1 and 2 seconds beside the first."""
    took = {}
    run = lambda name, call, port: took.update({name: timed(lambda: call(port, 4))})
    both = [threading.Thread(target=run, args=('one', guesses_by_one, first)),
            threading.Thread(target=run, args=('many', guesses_by_many, second))]
    [t.start() for t in both]
    [t.join() for t in both]
    assert took['one'] >= 3, took
    assert took['many'] >= 3, took


def elsewhere(port, address):
    """Who comes from elsewhere waits for none of those who guess; who guessed gets in as well."""
    ended = threading.Event()
    attack = threading.Thread(target=lambda: (guesses_by_many(port, 5), ended.set()))
    attack.start()
    guess(connect(port), 'me')
    log_on(port, address=address)
    assert not ended.is_set()
    attack.join()
    log_on(port)


def dialects(port, oldest):
    for dialect, is_spoken in [(SMB2_DIALECT_002, oldest == '2.0.2'), (SMB2_DIALECT_21, True)]:
        try:
            log_on(port, dialect=dialect)
        except Exception as e:
            assert not is_spoken, e
        else:
            assert is_spoken, hex(dialect)


def joins(connection, share):
    try:
        connection.connectTree(share)
        return True
    except SessionError as e:
        assert e.getErrorCode() == DENIED, hex(e.getErrorCode())
        return False


def listed(connection):
    return sorted(s['shi1_netname'][:-1].lower() for s in connection.listShares())


def shares(port):
    me, you = log_on(port), log_on(port, 'you')
    assert [joins(me, s) for s in ('mine', 'both', 'far')] == [True, True, True]
    assert [joins(you, s) for s in ('MINE', 'both', 'far')] == [False, True, True]
    assert listed(me) == ['both', 'far', 'ipc$', 'mine'], listed(me)
    assert listed(you) == ['both', 'far', 'ipc$'], listed(you)


def allowed(port, address):
    """All shares but one are for an address that this host has not, by way of its own one."""
    From.address.text = address
    connection = SMBConnection(address, address, sess_port=int(port))
    connection.login('me', 'password')
    assert [joins(connection, s) for s in ('mine', 'far')] == [True, False]
    assert 'far' not in listed(connection)


def logged(port):
    log_on(port)
    guess(connect(port), 'me', 'pass phrase')
    guess(connect(port), 'x\nvolary: all is well' + 'y' * 300)


{f.__name__: f for f in (guesses, elsewhere, dialects, shares, allowed, logged)}[sys.argv[1]](*sys.argv[2:])
