# What Samba's tool for descriptors, which can name no port, would do: by impacket.
import struct, sys
from impacket.smbconnection import SMBConnection, SessionError
from impacket.smb3structs import *
from impacket.ldap import ldaptypes as ldap

DENIED, UNSUPPORTED, ALL = 0xC0000022, 0xC00000BB, 0x1F01FF
OWNER, GROUP, DACL = 1, 2, 4


class As:
    """A share as this user finds it, whose password is "password"."""

    def __init__(self, port, user):
        self.c = SMBConnection('127.0.0.1', '127.0.0.1', sess_port=int(port))
        self.c.login(user, 'password')
        self.tree, self.smb = self.c.connectTree('v'), self.c.getSMBServer()

    def open(self, name, rights, how=FILE_OPEN, options=0):
        return self.c.createFile(self.tree, name, desiredAccess=rights, creationDisposition=how,
                                 creationOption=options)

    def put(self, name):
        f = self.open(name, FILE_WRITE_DATA, FILE_CREATE)
        self.c.writeFile(self.tree, f, b'secret')
        self.c.closeFile(self.tree, f)

    def reads(self, name):
        code = self.fails(lambda: self.c.closeFile(self.tree, self.open(name, FILE_READ_DATA)))
        assert code in (0, DENIED), hex(code)
        return code == 0

    def descriptor(self, name):
        f = self.open(name, READ_CONTROL)
        found = self.smb.queryInfo(self.tree, f, infoType=SMB2_0_INFO_SECURITY, fileInfoClass=0,
                                   additionalInformation=OWNER | GROUP | DACL)
        self.c.closeFile(self.tree, f)
        return found

    def protect(self, name, rules, owner=None, options=0):
        """Sets a DACL, and an owner; the code that it fails with."""
        f = self.open(name, READ_CONTROL | WRITE_DAC | WRITE_OWNER, options=options)
        parts = DACL | (OWNER if owner else 0)
        set = lambda: self.smb.setInfo(self.tree, f, inputBlob=new(rules, owner), fileInfoClass=0,
                                       infoType=SMB2_0_INFO_SECURITY, additionalInformation=parts)
        code = self.fails(set)
        self.c.closeFile(self.tree, f)
        return code

    def fails(self, call):
        try:
            call()
            return 0
        except SessionError as e:
            return e.getErrorCode()
        except Exception as e:
            return e.get_error_code()


def sid(text):
    out = ldap.LDAP_SID()
    out.fromCanonical(text)
    return out


def new(rules, owner):
    """A descriptor of rules, each a letter and a SID: Allow or Deny all."""
    acl = ldap.ACL()
    acl['AclRevision'], acl['Sbz1'], acl['Sbz2'], acl.aces = 2, 0, 0, []
    for kind, whom in rules:
        ace = ldap.ACE()
        allows = kind == 'A'
        ace['AceType'], ace['AceFlags'] = (0 if allows else 1), 0
        ace['Ace'] = ldap.ACCESS_ALLOWED_ACE() if allows else ldap.ACCESS_DENIED_ACE()
        ace['Ace']['Mask'], ace['Ace']['Sid'] = ldap.ACCESS_MASK(), sid(whom)
        ace['Ace']['Mask']['Mask'] = ALL
        acl.aces.append(ace)
    out = ldap.SR_SECURITY_DESCRIPTOR()
    out['Revision'], out['Sbz1'], out['Control'] = b'\x01', b'\x00', 0x8004
    out['OwnerSid'] = sid(owner) if owner else b''
    out['GroupSid'], out['Sacl'], out['Dacl'] = b'', b'', acl
    return out.getData()


def same(found, wanted):
    assert found == wanted, (found, wanted)


EVERYONE = 'S-1-1-0'
user = lambda uid: 'S-1-22-1-%d' % uid
DENY_B = [('D', user(1001)), ('A', EVERYONE)]
what, port, driver = sys.argv[1:]
keeps, has_modes = driver in ('mem', 'host', 'ffs2', 'cedar'), driver != 'fat16'
me, other, third = [As(port, name) for name in ('me' if has_modes else 'root', 'other', 'third')]
if what == 'first':
    if driver == 'mem':
        same(As(port, 'root').protect('', [('A', EVERYONE)], options=FILE_DIRECTORY_FILE), 0)
    me.put('f')
    before = me.descriptor('f')
    same(other.reads('f'), True)
    same(me.protect('f', DENY_B), 0 if keeps else UNSUPPORTED)
    if keeps:
        same(ldap.SR_SECURITY_DESCRIPTOR(me.descriptor('f'))['Dacl'].aces[0]['AceType'], 1)
        third.c.closeFile(third.tree, third.open('f', ALL & ~(DELETE | WRITE_DAC | WRITE_OWNER)))
    else:
        same(me.descriptor('f'), before)
        # One that the mode can say is taken.
        same(me.protect('f', [('A', EVERYONE)]), 0 if has_modes else DENIED)
        same(other.reads('f'), True)
    # An owner who may not give the file away changes none of the rest either.
    before = me.descriptor('f')
    for rules in ([('A', EVERYONE)], [('A', user(1000))], DENY_B[::-1]):
        if not has_modes:
            continue
        assert me.protect('f', rules, owner=user(1002)) != 0
        same(me.descriptor('f'), before)
    same(other.reads('f'), not keeps)
elif what == 'listed':
    # By a list of the volume: 1001 is let in, of the others only group 1002.
    same([who.reads('f') for who in (me, other, third)], [True, True, True])
    same([who.reads('g') for who in (me, other, third)], [True, False, True])
    aces = ldap.SR_SECURITY_DESCRIPTOR(me.descriptor('g'))['Dacl'].aces
    rules = [(ace['AceType'], ace['Ace']['Sid'].formatCanonical()) for ace in aces]
    assert (1, user(1001)) in rules and (0, 'S-1-22-2-1002') in rules, rules
else:
    same(other.reads('f'), not keeps)
    same(third.reads('f'), True)
    if keeps:
        # Closer, and open again: nobody is let in on the way.
        same(me.protect('f', [('A', user(1000))]), 0)
        same((other.reads('f'), third.reads('f'), me.reads('f')), (False, False, True))
        same(me.protect('f', [('D', user(1002)), ('A', EVERYONE)]), 0)
        same((other.reads('f'), third.reads('f'), me.reads('f')), (True, False, True))
print('content')
