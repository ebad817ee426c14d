//! CREATE (MS-SMB2 3.3.5.9, MS-FSA 2.1.5.1): opens existing nodes, and creates missing ones. May
//! use `open`, `path`, `oplock` and the rooms of rights and attributes.
//!
//! A request is parsed (`request`, `contexts`). If it concerns an existing open, `again` answers
//! it. Otherwise the node is opened here or created (`made`), within the caller's rights
//! (`granted`). The open is then added to the table, to be found again if it is `durable`.

mod again;
pub(crate) mod contexts;
mod durable;
pub(super) mod granted;
mod made;
mod request;

use super::names::{KeptPath, Path};
use super::open::{Breaker, File, bits_of_level, level, level_of_bits};
use super::oplock;
use super::path::{self, Walked};
use super::{access, attrs};
use crate::answer::{Answer, Failure};
use crate::budget::Taken;
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::Status;
use crate::wire::create::{Action, Disposition, option};
use crate::wire::fscc::file::attribute;
use again::Before;
use parking_lot::Mutex;
use request::{Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use volary_core::{Attr, Entry, FileKind, Kind, Mode, OpenId, Result as CoreResult};
use volary_session::{LeaseBits, LeaseKey, OpenHow, Session};

/// How often the search is repeated if an entry appears or vanishes meanwhile.
const RACES_MAX: u32 = 8;

/// Answers CREATE.
pub(crate) fn create(call: &mut Call<'_>) -> Answer {
    let request = Request::parse(call)?;
    call.tree.files.check_room()?;
    let _pending = match again::before(call, &request)? {
        Before::Answered(answer) => return answer,
        Before::Nothing(pending) => pending,
    };
    let path = Path::parse(request.name)?;
    let id = FileId {
        persistent: call.tree.common.next_persistent(),
        volatile: call.tree.files.next_volatile(),
    };
    let lease = request.lease(call);
    let opening = Opening {
        session: call.waiting(),
        call,
        request: &request,
        id,
        lease,
    };
    let taken = call.logon.budget.opens.take(call.link.limits().opens);
    let taken = taken.ok_or_else(|| {
        call.link.log_limit("opens", &call.logon.user);
        Status::TOO_MANY_OPENED_FILES
    })?;
    let opened = opening.open(&path)?;
    let answer = opening.enter(&opened, taken)?;
    call.related.file = Some(id);
    Ok(answer)
}

/// A CREATE in progress.
struct Opening<'c, 'a> {
    call: &'c Call<'a>,
    request: &'c Request<'a>,
    session: Session,
    id: FileId,
    lease: Option<LeaseKey>,
}

/// The result of opening or creating.
struct Opened {
    open: OpenId,
    entry: Entry,
    walked: Walked,
    access: u32,
    action: Action,
    /// Whether it was just created, and has only what every new node has.
    is_bare: bool,
}

/// The oplock or lease that an open gets.
#[derive(Default)]
struct Leased {
    level: u8,
    oplock: Option<LeaseKey>,
    lease: Option<LeaseKey>,
    /// The data of the lease context in the response.
    context: Option<Vec<u8>>,
    /// Notified when the lease or oplock is broken.
    breaker: Option<Arc<Breaker>>,
    /// Whether it lets the client delay closing the file, so that the open may be durable.
    keeps: bool,
}

impl Opening<'_, '_> {
    /// Opens or creates the node at the path.
    fn open(&self, path: &Path) -> Result<Opened, Failure> {
        for _ in 0..RACES_MAX {
            let walked = {
                let common = &self.call.tree.common;
                let wanted = |looked_at| self.call.check_search(looked_at);
                let search = path::Search::new(&wanted);
                let dialect = self.call.link.dialect();
                path::walk(&self.session, common, path, dialect, search)?
            };
            self.check_key(&walked)?;
            let opened = match walked.entry {
                Some(entry) => self.existing(walked, entry, path),
                None => self.missing(walked, path),
            };
            match opened {
                // Another client has created or removed the entry since the search.
                Err(failure) if failure.status == RETRY => {}
                opened => return opened,
            }
        }
        Err(Status::SHARING_VIOLATION.into())
    }

    /// Checks the key of the requested lease.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` if the key already belongs to a lease on another file.
    fn check_key(&self, walked: &Walked) -> Result<(), Failure> {
        let leased = self.lease.and_then(|key| self.session.leased_node(key));
        match (leased, walked.entry) {
            (None, _) => Ok(()),
            (Some(leased), Some(entry)) if leased == entry.node => Ok(()),
            _ => Err(Status::INVALID_PARAMETER.into()),
        }
    }

    fn existing(&self, walked: Walked, entry: Entry, path: &Path) -> Result<Opened, Failure> {
        let request = self.request;
        if request.disposition == Disposition::Create {
            return Err(Status::OBJECT_NAME_COLLISION.into());
        }
        let is_link = entry.attr.kind == FileKind::Symlink;
        if is_link && !request.has(option::OPEN_REPARSE_POINT) {
            let dialect = self.call.link.dialect();
            return Err(path::stopped(
                &self.session,
                entry.node,
                &walked.path,
                &[],
                dialect,
            ));
        }
        let is_dir = entry.attr.kind == FileKind::Dir;
        if !is_dir && (request.has(option::DIRECTORY) || path.dir_only) {
            return Err(Status::NOT_A_DIRECTORY.into());
        }
        if is_dir && request.has(option::NON_DIRECTORY) {
            return Err(Status::FILE_IS_A_DIRECTORY.into());
        }
        if is_dir && request.disposition.truncates() {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let granted = self.granted(&walked, &entry.attr)?;
        let open = self.open_node(&walked, &entry.attr, granted);
        let open = open.map_err(|e| match e.kind() {
            Kind::NotFound => RETRY.into(),
            _ => Failure::from(e),
        })?;
        let action = match request.disposition {
            Disposition::Supersede => Action::Superseded,
            Disposition::Overwrite | Disposition::OverwriteIf => Action::Overwritten,
            _ => Action::Opened,
        };
        let opened = Opened {
            open,
            entry,
            walked,
            access: granted,
            action,
            is_bare: false,
        };
        if request.disposition.truncates() {
            self.or_undo(&opened, self.overwritten(&opened))?;
        }
        Ok(opened)
    }

    /// Opens the node for data if data access was granted, and without it otherwise.
    fn open_node(&self, walked: &Walked, attr: &Attr, granted: u32) -> CoreResult<OpenId> {
        let truncates = self.request.disposition.truncates();
        let how = OpenHow {
            truncate: truncates,
            share: Some(self.request.shares(granted)),
            lease_key: self.key(),
            parent_key: self.parent_key(),
            ..OpenHow::from(Mode::Read)
        };
        let mode = match attr.kind {
            FileKind::File => self.file_mode(attr, granted),
            FileKind::Dir if granted & access::READ_DATA != 0 => Some(Mode::Read),
            _ => None,
        };
        match mode {
            Some(mode) => {
                let how = OpenHow { mode, ..how };
                self.session.open_seen(attr, walked.at(), how)
            }
            None => self.session.open_bare_seen(attr, walked.at(), &how),
        }
    }

    fn file_mode(&self, attr: &Attr, granted: u32) -> Option<Mode> {
        let readable = access::maximal(attr, None, self.session.cred()) & access::READ_DATA != 0;
        let reads = granted & (access::READ_DATA | access::EXECUTE) != 0 && readable;
        let writes = granted & access::WRITES != 0 || self.request.disposition.truncates();
        mode_for(reads, writes)
    }

    /// Returns the key of the requested lease or oplock.
    fn key(&self) -> Option<LeaseKey> {
        let oplock = bits_of_level(self.request.oplock) != LeaseBits::NONE;
        let own = || oplock::oplock_key(self.call.link, self.id);
        self.lease.or_else(|| oplock.then(own))
    }

    /// Returns the key of the client's lease on the directory.
    fn parent_key(&self) -> Option<LeaseKey> {
        self.lease?;
        let parent = self.request.asked.lease?.v2?.parent?;
        Some(oplock::lease_key(self.call, parent))
    }

    /// Completes an overwrite: the file is like a new one, but keeps its owner and mode.
    fn overwritten(&self, opened: &Opened) -> Result<(), Failure> {
        let session = &self.session;
        let attr = session.getattr(opened.entry.node)?;
        let attributes = self.request.attributes | attribute::ARCHIVE;
        let common = &self.call.tree.common;
        attrs::set_dos(session, common, &attr, attributes, Some(false))?;
        self.made_with(opened.open, &attr)
    }

    /// Passes `done` on. If it is an error, closes the open.
    fn or_undo<T>(&self, opened: &Opened, done: Result<T, Failure>) -> Result<T, Failure> {
        if done.is_err() {
            // The first error is reported. An error here would add nothing.
            let _ = self.session.close(opened.open);
        }
        done
    }

    /// Adds the open to the tree's table, and returns the answer.
    fn enter(&self, opened: &Opened, taken: Taken) -> Answer {
        if self.request.has(option::DELETE_ON_CLOSE) {
            let marked = self.session.delete_on_close(opened.open);
            self.or_undo(opened, marked.map_err(Failure::from))?;
        }
        let attr = self.attr_now(opened).map_err(Failure::from);
        let attr = self.or_undo(opened, attr)?;
        let leased = self.leased(opened);
        let leased = self.or_undo(opened, leased)?;
        let mut replies = self.contexts(opened, &attr);
        let is_file = opened.entry.attr.kind == FileKind::File;
        let (claim, context) = durable::of(self.call, self.request, leased.keeps && is_file);
        replies.extend(context);
        replies.extend(leased.context.map(|data| (b"RqLs", data)));
        let facts = attrs::facts(&self.call.tree.common, &attr);
        let file = Arc::new(File {
            id: self.id,
            open: opened.open,
            node: opened.entry.node,
            kind: opened.entry.attr.kind,
            access: opened.access,
            options: self.request.options,
            path: Mutex::new(KeptPath::new(&opened.walked.path)),
            position: AtomicU64::new(0),
            mode: AtomicU64::new(u64::from(self.request.options & option::MODE)),
            frozen: Mutex::default(),
            scan: Mutex::default(),
            watch: Mutex::default(),
            oplock: leased.oplock,
            lease: leased.lease,
            breaker: leased.breaker,
            claim,
            action: opened.action,
            is_fresh: AtomicBool::new(true),
            sequences: Mutex::default(),
            sequence: Mutex::new(self.call.sequence.unwrap_or(0)),
            tree: Arc::downgrade(self.call.tree) as _,
            waiting: Mutex::default(),
            taken: Arc::new(taken),
        });
        self.call.tree.common.enter(&file);
        if opened.action == Action::Created {
            let path = file.path.lock().components();
            let tree = self.call.tree;
            tree.common.watches.made(tree.by(), &path, file.kind);
        }
        self.call.tree.files.insert(file);
        let response = Response {
            oplock: leased.level,
            action: opened.action,
            facts,
            id: self.id,
            contexts: contexts::emit(&replies),
        };
        Ok(response.emit())
    }

    /// Returns the node's attributes. Those from before the open may lack others' gathered writes,
    /// but those of a new node are right.
    fn attr_now(&self, opened: &Opened) -> CoreResult<Attr> {
        if opened.is_bare {
            return Ok(opened.entry.attr);
        }
        self.session.getattr_open(opened.open)
    }

    /// Requests the oplock or lease from the session.
    fn leased(&self, opened: &Opened) -> Result<Leased, Failure> {
        let kind = opened.entry.attr.kind;
        let asked = self.request.asked.lease.as_ref();
        if let (Some(key), Some(asked)) = (self.lease, asked) {
            // Leases on directories exist only in version 2.
            let leasable = kind == FileKind::File || (kind == FileKind::Dir && asked.v2.is_some());
            let state = if leasable { asked.state } else { 0 };
            let want = oplock::bits_of_state(state);
            let common = &self.call.tree.common;
            let sink = common.enter_lease(
                key,
                &oplock::lease_breaker(self.call, asked.v2.map(|v2| v2.epoch)),
            );
            let base = sink.base();
            let lease = self.session.lease(opened.open, key, want, sink.clone());
            let lease = lease.inspect_err(|_| common.leave_lease(key))?;
            return Ok(Leased {
                breaker: Some(sink),
                keeps: lease.granted.has(LeaseBits::HANDLE) && !lease.breaking,
                level: level::LEASE,
                oplock: None,
                lease: Some(key),
                context: Some(contexts::lease_granted(asked, &lease, base)),
            });
        }
        let want = bits_of_level(self.request.oplock);
        if kind != FileKind::File || want == LeaseBits::NONE {
            return Ok(Leased::default());
        }
        let key = oplock::oplock_key(self.call.link, self.id);
        let sink = oplock::oplock_breaker(self.call, self.id);
        let lease = self.session.lease(opened.open, key, want, sink.clone())?;
        Ok(Leased {
            breaker: Some(sink),
            keeps: lease.granted.has(LeaseBits::HANDLE),
            level: level_of_bits(lease.granted),
            oplock: Some(key),
            lease: None,
            context: None,
        })
    }

    fn contexts(&self, opened: &Opened, attr: &Attr) -> Vec<(&'static [u8; 4], Vec<u8>)> {
        let mut replies: Vec<(&[u8; 4], Vec<u8>)> = Vec::new();
        let asked = &self.request.asked;
        if asked.maximal_access {
            let maximal = self.maximal(&opened.walked, attr).unwrap_or(opened.access);
            let mut data = vec![0; 4];
            data.extend_from_slice(&maximal.to_le_bytes());
            replies.push((b"MxAc", data));
        }
        if asked.disk_id {
            let mut data = attr.node.ino.get().to_le_bytes().to_vec();
            data.resize(32, 0);
            replies.push((b"QFid", data));
        }
        replies
    }
}

/// Marks a failed attempt that is to be repeated. It is never sent.
const RETRY: Status = Status(u32::MAX);

fn mode_for(reads: bool, writes: bool) -> Option<Mode> {
    match (reads, writes) {
        (true, true) => Some(Mode::ReadWrite),
        (true, false) => Some(Mode::Read),
        (false, true) => Some(Mode::Write),
        (false, false) => None,
    }
}
