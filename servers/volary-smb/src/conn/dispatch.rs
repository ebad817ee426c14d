//! Dispatches requests to their handlers (MS-SMB2 3.3.5.2).

use super::compound::Requests;
use super::members::{Joined, Member};
use super::{Conn, negotiate, setup, tree};
use crate::answer::{Answer, Failure, Related, empty_body};
use crate::client::{Broken, Logon, Reply, Security, Wait, Worker};
use crate::crypto::{Role, TransformHeader};
use crate::files::Call;
use crate::wire::Dialect;
use crate::wire::header::{self, HEADER_LEN, flags};
use crate::wire::{Body, Command, Cursor, Header, Status};
use crate::{crypto, files, ipc};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Messages with wrong signatures that a connection tolerates.
const FORGED_MAX: u32 = 16;
/// Bytes that one credit pays for.
const CREDIT_BYTES: u32 = 64 * 1024;
/// Reads and writes of at least this many bytes run beside the next request.
const LONG: u32 = 32 * 1024;

/// Carries out the requests of a message. `signer` is who signed it, if this is already known. Such
/// a message is never a compound.
///
/// # Errors
/// [`Broken`] if the connection has to end.
pub(super) fn message(
    conn: &Arc<Conn>,
    worker: &Arc<Worker>,
    frame: &mut [u8],
    signer: Option<&Arc<Logon>>,
) -> Result<(), Broken> {
    let protection = Protection {
        signer,
        sealed: None,
    };
    match frame.first_chunk() {
        Some(&header::MAGIC) => requests(conn, worker, frame, protection),
        Some(&crypto::SEALED_MAGIC) => {
            let transform = TransformHeader::parse(frame).map_err(|_| Broken)?;
            let logon = conn.members.logon(transform.session_id).ok_or(Broken)?;
            let (_, opener) = logon.keys.seal.as_ref().ok_or(Broken)?;
            opener.open(frame).map_err(|_| Broken)?;
            let message = frame.get(crypto::TRANSFORM_LEN..).ok_or(Broken)?;
            let sealed = Some(&logon);
            requests(
                conn,
                worker,
                message,
                Protection {
                    sealed,
                    ..protection
                },
            )
        }
        Some(&negotiate::SMB1_MAGIC) => negotiate::from_smb1(&conn.link, frame),
        _ => Err(Broken),
    }
}

/// How a message is protected.
#[derive(Clone, Copy)]
struct Protection<'a> {
    /// Who signed it, if this is already known.
    signer: Option<&'a Arc<Logon>>,
    /// The session whose key encrypted it.
    sealed: Option<&'a Arc<Logon>>,
}

/// The shared state of the requests of a compound.
struct Compound<'a> {
    conn: &'a Arc<Conn>,
    worker: &'a Arc<Worker>,
    signer: Option<&'a Arc<Logon>>,
    sealed: Option<&'a Arc<Logon>>,
    related: Related,
    /// The session and the tree of the previous request.
    session_id: u64,
    tree_id: u32,
    is_alone: bool,
    is_last: bool,
    /// The first request was marked as related, or the session or tree of one was missing. All
    /// requests related to it are then invalid (3.3.5.2.7.2).
    is_senseless: bool,
}

fn requests(
    conn: &Arc<Conn>,
    worker: &Arc<Worker>,
    message: &[u8],
    Protection { signer, sealed }: Protection<'_>,
) -> Result<(), Broken> {
    let requests = Requests::of(message, conn.link.limits().compound)?;
    let mut compound = Compound {
        conn,
        worker,
        signer,
        sealed,
        related: Related::default(),
        session_id: u64::MAX,
        tree_id: u32::MAX,
        is_alone: requests.count() == 1,
        is_last: true,
        is_senseless: false,
    };
    for (at, (header, message, is_last)) in requests.enumerate() {
        compound.is_last = is_last;
        compound.request(at, header, message)?;
    }
    let replies = std::mem::take(&mut *worker.replies.lock());
    conn.link.send(replies)
}

impl Compound<'_> {
    fn request(&mut self, at: usize, mut header: Header, message: &[u8]) -> Result<(), Broken> {
        if header.has(flags::RESPONSE) {
            return Err(Broken);
        }
        let command = Command::from_code(header.command);
        self.relate(at, &mut header);
        if command == Some(Command::Cancel) {
            self.cancel(&header, message);
            return Ok(());
        }
        let charge = self.charge(&header);
        if !self.conn.link.window.lock().take(header.message_id, charge) {
            return Err(Broken);
        }
        let is_negotiated = self.conn.link.negotiated.get().is_some();
        if is_negotiated == (command == Some(Command::Negotiate)) {
            return Err(Broken);
        }
        match command {
            Some(Command::Negotiate | Command::SessionSetup) if !self.is_alone => {
                self.reply(
                    &header,
                    &Security::default(),
                    Err(Status::INVALID_PARAMETER.into()),
                );
            }
            Some(Command::Negotiate) => {
                negotiate::answer(&self.conn.link, self.worker, &header, message)?;
            }
            Some(Command::SessionSetup) => {
                setup::answer(self.conn, self.worker, self.sealed, &header, message)?;
            }
            _ => self.secured(&header, command, message)?,
        }
        Ok(())
    }

    /// Gives a related request the session and the tree of the previous one.
    fn relate(&mut self, at: usize, header: &mut Header) {
        self.related.is_related = header.has(flags::RELATED);
        self.is_senseless &= self.related.is_related;
        self.is_senseless |= self.related.is_related && at == 0;
        if self.related.is_related && at > 0 {
            header.session_id = self.session_id;
            if !header.has(flags::ASYNC) {
                header.tree_id = self.tree_id;
            }
        } else {
            self.related = Related {
                is_related: self.related.is_related,
                ..Related::default()
            };
            self.session_id = header.session_id;
            self.tree_id = header.tree_id;
        }
    }

    fn charge(&self, header: &Header) -> u16 {
        if self.conn.link.dialect() >= Dialect::Smb210 {
            header.credit_charge.max(1)
        } else {
            1
        }
    }

    /// Carries out a request in a session, or one that needs none.
    fn secured(
        &mut self,
        header: &Header,
        command: Option<Command>,
        message: &[u8],
    ) -> Result<(), Broken> {
        let member = self.conn.members.get(header.session_id);
        let logon = member.as_ref().map(|member| &member.logon);
        let mut security = Security {
            sign: header.has(flags::SIGNED),
            seal: self.sealed.is_some(),
            logon: logon.cloned(),
        };
        if let Err(status) = self.check_security(header, logon, message)? {
            security.sign = false;
            security.logon = self.sealed.cloned();
            self.reply(header, &security, Err(status.into()));
            return Ok(());
        }
        if security.seal {
            security.logon = self.sealed.cloned();
        } else if logon.is_none() {
            security.logon = self.signed_by(header, message);
        }
        let answer = match (command, &member) {
            _ if self.is_senseless => Err(Status::INVALID_PARAMETER.into()),
            (None, _) => Err(Status::INVALID_PARAMETER.into()),
            (Some(Command::Echo), member) if member.is_some() || header.session_id == 0 => {
                Ok(empty_body())
            }
            (Some(_), None) => Err(Status::USER_SESSION_DELETED.into()),
            (Some(command), Some(member)) => {
                return self.in_session(header, command, member, &security, message);
            }
        };
        self.reply(header, &security, answer);
        Ok(())
    }

    /// Checks that the request is signed or encrypted as required. The inner error is the reply's
    /// status.
    fn check_security(
        &self,
        header: &Header,
        logon: Option<&Arc<Logon>>,
        message: &[u8],
    ) -> Result<Result<(), Status>, Broken> {
        if let Some(sealed) = self.sealed {
            let is_theirs = logon.is_none_or(|logon| logon.id == sealed.id);
            return Ok(if is_theirs {
                Ok(())
            } else {
                Err(Status::ACCESS_DENIED)
            });
        }
        let Some(logon) = logon else {
            return Ok(Ok(()));
        };
        if logon.sealed {
            return Ok(Err(Status::ACCESS_DENIED));
        }
        if header.has(flags::SIGNED) {
            let is_known = self.signer.is_some_and(|known| Arc::ptr_eq(known, logon));
            let signer = &logon.keys.signer;
            if is_known || signer.verify(message, header.message_id, Role::Client) {
                return Ok(Ok(()));
            }
            if logon.forged.fetch_add(1, Ordering::Relaxed) >= FORGED_MAX {
                self.conn.link.log_sent_away("wrong signatures");
                return Err(Broken);
            }
            return Ok(Err(Status::ACCESS_DENIED));
        }
        // From 3.1.1 on, the first tree connect must be signed. The signature proves that nobody
        // changed the unsigned NEGOTIATE (3.3.5.7).
        let connects = header.command == Command::TreeConnect.code();
        let required =
            logon.signing_required || connects && self.conn.link.dialect() >= Dialect::Smb311;
        Ok(if required {
            Err(Status::ACCESS_DENIED)
        } else {
            Ok(())
        })
    }

    /// Returns who signed a request for a session that does not exist: a recently ended session, or
    /// the connection's only one. A client that requires signatures accepts no answer without one.
    fn signed_by(&self, header: &Header, message: &[u8]) -> Option<Arc<Logon>> {
        if !header.has(flags::SIGNED) {
            return None;
        }
        let ended = self.conn.members.ended(header.session_id);
        let known = ended.or_else(|| self.conn.members.only_logon())?;
        let signer = &known.keys.signer;
        let is_theirs = signer.verify(message, header.message_id, Role::Client);
        is_theirs.then_some(known)
    }

    fn cancel(&self, header: &Header, message: &[u8]) {
        let Some(logon) = self.conn.members.logon(header.session_id) else {
            return;
        };
        let is_right = match self.sealed {
            Some(sealed) => sealed.id == logon.id,
            None if logon.sealed => false,
            None if header.has(flags::SIGNED) => {
                let signer = &logon.keys.signer;
                signer.verify(message, header.message_id, Role::ClientCancel)
            }
            None => !logon.signing_required,
        };
        if is_right {
            self.conn.link.waits.cancel(header, logon.id);
        }
    }

    fn in_session(
        &mut self,
        header: &Header,
        command: Command,
        member: &Arc<Member>,
        security: &Security,
        message: &[u8],
    ) -> Result<(), Broken> {
        let answer = match command {
            Command::TreeConnect => match tree::connect(self.conn, member, message) {
                Ok((id, body)) => {
                    self.tree_id = id;
                    let header = Header {
                        tree_id: id,
                        ..*header
                    };
                    self.reply(&header, security, Ok(body));
                    return Ok(());
                }
                Err(status) => Err(status.into()),
            },
            Command::Logoff => {
                self.conn.end_logon(member, true);
                Ok(empty_body())
            }
            _ => {
                let joined = member.joined(header.tree_id);
                match joined {
                    None => Err(Status::NETWORK_NAME_DELETED.into()),
                    Some(joined) => {
                        return self.in_tree(header, command, member, &joined, security, message);
                    }
                }
            }
        };
        self.reply(header, security, answer);
        Ok(())
    }

    fn in_tree(
        &mut self,
        header: &Header,
        command: Command,
        member: &Arc<Member>,
        joined: &Joined,
        security: &Security,
        message: &[u8],
    ) -> Result<(), Broken> {
        if command == Command::Ioctl
            && let Some(answer) = negotiate::validation(&self.conn.link, message)?
        {
            self.reply(header, security, answer);
            return Ok(());
        }
        let wait = Wait::new(&self.conn.link, self.worker, header, security);
        if !self.is_last {
            wait.forbid_parking();
        }
        let answer = match joined {
            _ if command == Command::TreeDisconnect => {
                tree::disconnect(member, header.tree_id).map(Body::from)
            }
            Joined::Disk(tree) if tree.sealed && !security.seal => {
                Err(Status::ACCESS_DENIED.into())
            }
            _ if !self.is_paid(header, command, message) => Err(Status::INVALID_PARAMETER.into()),
            Joined::Pipes(pipes) => {
                ipc::answer(pipes, command, &mut self.related, message).map(Body::from)
            }
            Joined::Disk(tree) => {
                if self.is_alone {
                    self.overlap(command, message);
                }
                let is_v3 = self.conn.link.dialect() >= Dialect::Smb300;
                let mut call = Call {
                    message,
                    body: message.get(HEADER_LEN..).unwrap_or_default(),
                    link: &self.conn.link,
                    logon: &member.logon,
                    tree,
                    trees: &|| member.trees(),
                    related: &mut self.related,
                    wait: &wait,
                    command,
                    replays: header.has(flags::REPLAY) && is_v3,
                    // `ChannelSequence` is the low half of the field that is the status in replies.
                    sequence: is_v3.then_some((header.status & 0xffff) as u16),
                };
                answer(&mut call, command)
            }
        };
        if let Err(failure) = &answer {
            self.note_failure(failure);
        }
        if let Some(reply) = wait.answered(answer) {
            self.push(reply);
        }
        Ok(())
    }

    /// Lets the next request be read while this one is carried out, if this is a long one and the
    /// next has arrived.
    fn overlap(&self, command: Command, message: &[u8]) {
        let is_long = matches!(command, Command::Read | Command::Write)
            && payload(command, message).is_some_and(|len| len >= LONG);
        if is_long && self.conn.frames.lock().has_more() {
            // If no thread can take the turn, requests run one by one.
            let _ = self.worker.pass(&self.conn.link.turn);
        }
    }

    /// Returns whether the request's credits pay for the bytes that it moves (3.3.5.2.5).
    fn is_paid(&self, header: &Header, command: Command, message: &[u8]) -> bool {
        let large = self.conn.link.dialect() >= Dialect::Smb210;
        let Some(len) = payload(command, message).filter(|_| large) else {
            return true;
        };
        len.div_ceil(CREDIT_BYTES) <= u32::from(self.charge(header))
    }

    fn note_failure(&mut self, failure: &Failure) {
        if failure.status.is_error() {
            self.related.failed = Some(failure.status);
        }
        let missing = [Status::USER_SESSION_DELETED, Status::NETWORK_NAME_DELETED];
        self.is_senseless |= missing.contains(&failure.status);
    }

    fn reply(&mut self, request: &Header, security: &Security, answer: Answer) {
        if let Err(failure) = &answer {
            self.note_failure(failure);
        }
        let wait = Wait::new(&self.conn.link, self.worker, request, security);
        if let Some(reply) = wait.answered(answer.map(Body::from)) {
            self.push(reply);
        }
    }

    fn push(&self, reply: Reply) {
        self.worker.replies.lock().push(reply);
    }
}

fn answer(call: &mut Call<'_>, command: Command) -> Answer<Body> {
    let body = match command {
        Command::Create => files::create(call),
        Command::Close => files::close(call),
        Command::Flush => files::flush(call),
        Command::Read => return files::read(call),
        Command::Write => files::write(call),
        Command::Lock => files::lock(call),
        Command::Ioctl => files::ioctl(call),
        Command::QueryDirectory => files::query_directory(call),
        Command::ChangeNotify => files::change_notify(call),
        Command::QueryInfo => files::query_info(call),
        Command::SetInfo => files::set_info(call),
        Command::OplockBreak => files::oplock_break(call),
        Command::Negotiate
        | Command::SessionSetup
        | Command::Logoff
        | Command::TreeConnect
        | Command::TreeDisconnect
        | Command::Cancel
        | Command::Echo => Err(Status::INVALID_PARAMETER.into()),
    };
    body.map(Body::from)
}

/// Returns how many bytes the request moves, in the direction in which it moves more. Each command
/// has this in its own fields.
fn payload(command: Command, message: &[u8]) -> Option<u32> {
    let at: &[usize] = match command {
        Command::Read | Command::Write | Command::SetInfo | Command::ChangeNotify => &[4],
        Command::Ioctl => &[28, 32, 40, 44],
        Command::QueryDirectory => &[28],
        Command::QueryInfo => &[4, 12],
        _ => return None,
    };
    let number = |at: &usize| {
        let mut c = Cursor::new(message.get(HEADER_LEN..)?.get(*at..)?);
        c.u32().ok()
    };
    at.iter().filter_map(number).max()
}
