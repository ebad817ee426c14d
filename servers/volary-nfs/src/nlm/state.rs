//! The record of which clients have locks, kept in a file, so that locks outlive the server.
//!
//! A client whose name is in the file when the server starts is told of the restart (`SM_NOTIFY`),
//! and reclaims its locks. There is a grace period for that, in which no other locks are given.

use crate::rpc::call::Call;
use crate::rpc::owner::BELIEVED;
use crate::timer;
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use volary_rpc::{Decoded, Input};
use volary_session::Party;

/// How many clients can be recorded.
const CLIENTS_MAX: usize = 4096;
/// How many clients of one party can be recorded: a host may have several names.
const CLIENTS_OF_PARTY: usize = 64;
/// The longest name of a machine, in bytes: that of a DNS name.
const MACHINE_MAX: usize = 255;
/// A client is forgotten after this many seconds without locks, since most come back.
const IDLE: u32 = 60;
const HEAD: &str = "volary's NFS clients with locks 1";

/// The clients that have locks, recorded in a file, so that they can reclaim them after a restart
/// of the server.
#[derive(Debug)]
pub struct LockState {
    path: PathBuf,
    /// NSM's state number of this run.
    number: u32,
    grace_until: Option<Instant>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    clients: Clients,
    /// Whether the file differs from `clients`, so that all of it must be rewritten.
    differs: bool,
}

type Clients = HashMap<Client, Entry>;

/// A holder of locks: the name that a machine gives itself, and the party that it calls from. The
/// party is known from the kernel or the network; the name is not verified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(super) peer: IpAddr,
    /// Keeps clients of other parties apart, even if they use the same name.
    pub(super) party: Party,
    pub(super) machine: Box<[u8]>,
}

impl Client {
    /// Reads the machine's name from a call.
    pub(super) fn read(input: &mut Input<'_>, call: &Call) -> Decoded<Self> {
        Ok(Self {
            peer: call.peer.ip().to_canonical(),
            party: call.party,
            machine: input.opaque(MACHINE_MAX)?.into(),
        })
    }

    /// Returns the party to which a request of this client for the user `uid` counts. That is the
    /// client's own party, but the believed client on this host speaks for many users, so they
    /// count separately.
    pub(super) fn counts_for(&self, uid: u32) -> Party {
        match self.party {
            BELIEVED => Party::User(uid),
            party => party,
        }
    }

    /// Returns the client's line in the file. For a user of this host, it ends with their number.
    fn line(&self, server: IpAddr) -> String {
        let mut line = format!("client {} {server} ", self.peer);
        // Writing to a string does not fail.
        for byte in &self.machine {
            let _ = write!(line, "{byte:02x}");
        }
        if let Party::User(uid) = self.party {
            let _ = write!(line, " {uid}");
        }
        line.push('\n');
        line
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The address by which the client knows this server.
    server: IpAddr,
    /// How many seconds it has been without locks.
    idle: u32,
}

impl LockState {
    /// Loads the state of the last run; before the first run the file does not exist. If clients
    /// had locks, a grace period of `grace` begins, in which only they get locks.
    ///
    /// # Errors
    /// Those of reading and writing the file. `PermissionDenied` for a file that another user owns
    /// or that others may write. `InvalidData` for a malformed file.
    pub fn open(path: &Path, grace: Duration) -> io::Result<Self> {
        let (before, clients) = match read(path) {
            Ok(text) => parse(&text).ok_or_else(|| {
                let words = "it does not hold the clients with locks; without it they lose theirs";
                io::Error::new(io::ErrorKind::InvalidData, words)
            })?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => (0, HashMap::new()),
            Err(e) => return Err(e),
        };
        let state = Self {
            path: path.to_owned(),
            // NSM uses odd numbers for a host that is up.
            number: before.wrapping_add(2) | 1,
            grace_until: (!clients.is_empty()).then(|| timer::now() + grace),
            known: Mutex::new(Known {
                clients,
                differs: false,
            }),
        };
        state.save(&state.known.lock().clients)?;
        Ok(state)
    }

    /// Returns whether the grace period lasts.
    pub(crate) fn is_grace(&self) -> bool {
        self.grace_until.is_some_and(|until| timer::now() < until)
    }

    /// Returns NSM's state number.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the recorded clients, each with the address by which it knows this server.
    pub(super) fn clients(&self) -> Vec<(Client, IpAddr)> {
        let known = self.known.lock();
        let clients = known.clients.iter();
        clients
            .map(|(client, entry)| (client.clone(), entry.server))
            .collect()
    }

    /// Records that a client is about to get a lock, and the address by which it knows this server.
    /// A new client is in the file when this returns; a changed address follows a second later.
    ///
    /// # Errors
    /// `QuotaExceeded` if there are too many, of its party or in all; those of writing the file.
    pub(super) fn note(&self, client: &Client, server: IpAddr) -> io::Result<()> {
        let mut known = self.known.lock();
        if let Some(entry) = known.clients.get_mut(client) {
            let moved = entry.server != server;
            *entry = Entry { server, idle: 0 };
            known.differs |= moved;
            return Ok(());
        }
        let theirs = known.clients.keys().filter(|c| c.party == client.party);
        if theirs.count() >= CLIENTS_OF_PARTY || known.clients.len() >= CLIENTS_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let entry = Entry { server, idle: 0 };
        known.clients.insert(client.clone(), entry);
        let saved = match known.differs {
            true => self.save(&known.clients),
            false => self.append(&client.line(server)),
        };
        known.differs = saved.is_err();
        if saved.is_err() {
            known.clients.remove(client);
        }
        saved
    }

    /// Forgets clients that have had no locks for long. To be called once a second.
    pub(super) fn sweep(&self, has_locks: impl Fn(&Client) -> bool) {
        let mut known = self.known.lock();
        if !self.is_grace() {
            let count = known.clients.len();
            known.clients.retain(|client, entry| {
                entry.idle = if has_locks(client) { 0 } else { entry.idle + 1 };
                entry.idle <= IDLE
            });
            known.differs |= known.clients.len() != count;
        }
        if known.differs {
            // A client that stays in the file by an error is only told of a restart in vain.
            known.differs = self.save(&known.clients).is_err();
        }
    }

    /// Appends one line. If this fails, a part of it may have been written.
    fn append(&self, line: &str) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let mut how = OpenOptions::new();
        let mut file = how.append(true).custom_flags(flags).open(&self.path)?;
        file.write_all(line.as_bytes())?;
        file.sync_data()
    }

    /// Writes all of the file under another name, and renames it over the old one.
    fn save(&self, clients: &Clients) -> io::Result<()> {
        let mut text = format!("{HEAD}\nstate {}\n", self.number);
        for (client, entry) in clients {
            text.push_str(&client.line(entry.server));
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let fresh = PathBuf::from(name);
        let mut file = match make(&fresh) {
            // The file was left by a run that was killed.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&fresh)?;
                make(&fresh)?
            }
            made => made?,
        };
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        let dir = match self.path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        File::open(dir)?.sync_all()
    }
}

/// Makes a new file that nobody else may read.
fn make(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.write(true).create_new(true).mode(0o600).open(path)
}

/// # Errors
/// The host's, also for a symlink; `PermissionDenied` for a file that another user could have
/// written.
fn read(path: &Path) -> io::Result<String> {
    let mut how = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = how
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let meta = file.metadata()?;
    let is_ours = meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
    if !meta.is_file() || !is_ours {
        let words = "it is no file that only who runs this may write";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the state number and the clients of a file. A last line that a power cut left incomplete
/// is ignored: its client was not told that it is recorded.
fn parse(text: &str) -> Option<(u32, Clients)> {
    let (whole, _) = text.rsplit_once('\n')?;
    let mut lines = whole.lines();
    if lines.next()? != HEAD {
        return None;
    }
    let number = lines.next()?.strip_prefix("state ")?.parse().ok()?;
    let mut clients = HashMap::new();
    for line in lines {
        let mut words = line.strip_prefix("client ")?.split(' ');
        let (peer, server) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let machine = bytes_of(words.next()?)?;
        let uid = words.next().map(str::parse).transpose().ok()?;
        if words.next().is_some() || clients.len() >= CLIENTS_MAX {
            return None;
        }
        let client = Client {
            peer,
            party: Party::of(peer, &Ok(uid)),
            machine,
        };
        clients.insert(client, Entry { server, idle: 0 });
    }
    Some((number, clients))
}

fn bytes_of(hex: &str) -> Option<Box<[u8]>> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        u8::try_from(high? << 4 | low?).ok()
    };
    let bytes = pairs.iter().map(byte).collect::<Option<_>>()?;
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn client(machine: &[u8]) -> Client {
        let peer = IpAddr::from([10, 0, 0, 7]);
        Client {
            peer,
            party: Party::Host(peer),
            machine: machine.into(),
        }
    }

    /// Returns a client for a user of this host.
    fn user(uid: u32, machine: &[u8]) -> Client {
        Client {
            peer: IpAddr::from([127, 0, 0, 1]),
            party: Party::User(uid),
            machine: machine.into(),
        }
    }

    fn machines(state: &LockState) -> Vec<Box<[u8]>> {
        let mut all: Vec<_> = state.clients().into_iter().map(|c| c.0.machine).collect();
        all.sort();
        all
    }

    #[test]
    fn who_had_locks_is_known_after_a_restart_and_has_grace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks");
        let server = IpAddr::from([10, 0, 0, 1]);
        let first = LockState::open(&path, HOUR).unwrap();
        assert!(!first.is_grace());
        for machine in [&b"a b\n\xff"[..], b"", b"other"] {
            first.note(&client(machine), server).unwrap();
        }
        let second = LockState::open(&path, HOUR).unwrap();
        assert_eq!((first.number(), second.number()), (3, 5));
        assert_eq!(
            machines(&second),
            [&b""[..], b"a b\n\xff", b"other"].map(Box::from)
        );
        assert!(second.clients().iter().all(|(_, at)| *at == server));
        second.sweep(|_| false);
        assert!(second.is_grace() && second.clients().len() == 3);
        let third = LockState::open(&path, Duration::ZERO).unwrap();
        assert!(!third.is_grace());
        for _ in 0..IDLE {
            third.sweep(|_| false);
        }
        assert_eq!(third.clients().len(), 3);
        third.sweep(|c| *c.machine == *b"other");
        assert_eq!(machines(&third), [Box::from(&b"other"[..])]);
        let fourth = LockState::open(&path, HOUR).unwrap();
        assert_eq!(machines(&fourth), [Box::from(&b"other"[..])]);
    }

    #[test]
    fn a_client_that_cannot_be_written_down_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        let state = LockState::open(&below.join("locks"), HOUR).unwrap();
        fs::remove_dir_all(&below).unwrap();
        let server = IpAddr::from([10, 0, 0, 1]);
        assert!(state.note(&client(b"a"), server).is_err());
        assert!(state.note(&client(b"a"), server).is_err());
        assert!(state.clients().is_empty());
    }

    #[test]
    fn one_host_s_names_leave_room_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let state = LockState::open(&dir.path().join("locks"), HOUR).unwrap();
        let server = IpAddr::from([10, 0, 0, 1]);
        for n in 0..CLIENTS_OF_PARTY {
            state.note(&client(&n.to_be_bytes()), server).unwrap();
        }
        assert!(state.note(&client(b"more"), server).is_err());
        state.note(&client(&0_usize.to_be_bytes()), server).unwrap();
        state.note(&user(2, b"more"), server).unwrap();
    }

    #[test]
    fn users_with_one_machine_s_name_are_told_apart_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks");
        let state = LockState::open(&path, HOUR).unwrap();
        let ours = IpAddr::from([127, 0, 0, 1]);
        let theirs = IpAddr::from([127, 0, 0, 2]);
        state.note(&user(1, b""), ours).unwrap();
        state.note(&user(2, b""), theirs).unwrap();
        let state = LockState::open(&path, HOUR).unwrap();
        let clients: HashMap<_, _> = state.clients().into_iter().collect();
        let expected = HashMap::from([(user(1, b""), ours), (user(2, b""), theirs)]);
        assert_eq!(clients, expected);
        // If a client calls another address of ours, it is told of a restart by that one.
        state.note(&user(1, b""), theirs).unwrap();
        state.sweep(|_| true);
        let state = LockState::open(&path, HOUR).unwrap();
        assert!(state.clients().contains(&(user(1, b""), theirs)));
    }

    #[test]
    fn one_name_more_writes_no_more_than_its_line() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks");
        let state = LockState::open(&path, HOUR).unwrap();
        let server = IpAddr::from([10, 0, 0, 1]);
        let inode = || fs::metadata(&path).unwrap().ino();
        let before = inode();
        for n in 0..CLIENTS_OF_PARTY {
            state.note(&client(&n.to_be_bytes()), server).unwrap();
        }
        assert_eq!(inode(), before, "all of the file was written");
        // A line that was cut short is ignored.
        state.append("client 10.0.0.8 10.0.").unwrap();
        let again = LockState::open(&path, HOUR).unwrap();
        assert_eq!(again.clients().len(), CLIENTS_OF_PARTY);
    }

    #[test]
    fn a_line_that_was_written_in_part_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks");
        let state = LockState::open(&path, HOUR).unwrap();
        let server = IpAddr::from([10, 0, 0, 1]);
        fs::remove_file(&path).unwrap();
        assert!(state.note(&client(b"a"), server).is_err());
        state.note(&client(b"b"), server).unwrap();
        let again = LockState::open(&path, HOUR).unwrap();
        assert_eq!(machines(&again), [Box::from(&b"b"[..])]);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let good = format!("{HEAD}\nstate 7\nclient ::1 127.0.0.1 00ff\n");
        assert_eq!(parse(&good).unwrap().1.len(), 1);
        for bad in [
            "",
            "something else\n",
            HEAD,
            &good.replace("state 7", "state x"),
            &good.replace("00ff", "0ff"),
            &good.replace("00ff", "0xff"),
            &good.replace("00ff", "00ff more"),
            &good.replace("00ff", "00ff 7 more"),
            &good.replace("::1", "nowhere"),
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
