//! SESSION_SETUP (MS-SMB2 3.3.5.5): logging on, and logging on again.

use super::Conn;
use super::members::Member;
use super::setups::Setup;
use crate::answer::Failure;
use crate::auth::{self, Exchange, Host, LoggedOn, Refused, Step};
use crate::client::{Broken, Logon, Negotiated, Reply, Security, Worker};
use crate::crypto::{self, Algorithm, Keys, Preauth, Role};
use crate::guesses::Attempt;
use crate::wire::Dialect;
use crate::wire::header::flags;
use crate::wire::negotiate::security_mode;
use crate::wire::setup::{self, BINDING, ENCRYPT_DATA, Request};
use crate::wire::{Header, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::{info, warn};
use volary_core::escape_short;

/// The most logons in progress on a connection.
const SETUPS_MAX: usize = 8;

/// The reply to a request, without its header.
struct Outcome {
    session_id: u64,
    status: Status,
    body: Vec<u8>,
    security: Security,
}

/// Answers SESSION_SETUP.
pub(super) fn answer(
    conn: &Arc<Conn>,
    worker: &Worker,
    sealed: Option<&Arc<Logon>>,
    header: &Header,
    message: &[u8],
) -> Result<(), Broken> {
    let link = &conn.link;
    let negotiated = link.negotiated.get().ok_or(Broken)?;
    let id = header.session_id;
    let member = conn.members.get(id);
    let logon = member.as_ref().map(|member| &member.logon);
    if let Some((status, security)) = of_another(conn, negotiated, header, message) {
        let mut header = link.reply_header(header);
        header.status = status.0;
        let body = Failure::from(status).into_body().into();
        let reply = Reply {
            header,
            body,
            security,
        };
        worker.replies.lock().push(reply);
        return Ok(());
    }
    let checked = check(sealed, logon, header, message);
    let security = Security {
        // A request that may be forged gets no signed reply.
        sign: header.has(flags::SIGNED) && logon.is_some() && checked.is_ok(),
        seal: sealed.is_some(),
        logon: sealed.or(logon).cloned(),
    };
    let outcome = checked.and_then(|()| {
        let member = member.as_ref();
        step(conn, worker, negotiated, member, &security, id, message)
    });
    let outcome = outcome.unwrap_or_else(|status| Outcome {
        session_id: id,
        status,
        body: Failure::from(status).into_body(),
        security,
    });
    let mut reply = Reply {
        header: link.reply_header(header),
        body: outcome.body.into(),
        security: outcome.security,
    };
    reply.header.session_id = outcome.session_id;
    reply.header.status = outcome.status.0;
    if outcome.status == Status::MORE_PROCESSING_REQUIRED {
        let sent = reply.header.emit();
        if let Some(setup) = conn.setups.lock().get_mut(&outcome.session_id) {
            setup.preauth.mix(&[&sent, reply.body.bytes()]);
        }
    }
    worker.replies.lock().push(reply);
    Ok(())
}

/// Returns the refusal of a request about another connection's session, or `None` for other
/// requests. A session has only one connection here. The errors of 3.3.5.5 take precedence. They
/// are signed with the session's key if the request was.
fn of_another(
    conn: &Arc<Conn>,
    negotiated: &Negotiated,
    header: &Header,
    message: &[u8],
) -> Option<(Status, Security)> {
    let request = Request::parse(message).ok()?;
    let binds = request.flags & BINDING != 0;
    let id = header.session_id;
    let is_ours = conn.members.get(id).is_some() || conn.setups.lock().contains_key(&id);
    if !binds && (id == 0 || is_ours) {
        return None;
    }
    let gone = (Status::USER_SESSION_DELETED, Security::default());
    let Some((theirs, member)) = conn.register.find_logon(id) else {
        return Some(gone);
    };
    let Some(agreed) = theirs.link.negotiated.get() else {
        return Some(gone);
    };
    let logon = &member.logon;
    let signer = &logon.keys.signer;
    if !header.has(flags::SIGNED) || !signer.verify(message, header.message_id, Role::Client) {
        let status = if binds {
            Status::INVALID_PARAMETER
        } else {
            gone.0
        };
        return Some((status, Security::default()));
    }
    let security = Security {
        // GMAC's nonce is the message id. If a message is replayed on a connection where its id is
        // new, a second reply must not be signed with the same nonce.
        sign: logon.is_new_setup(message) || agreed.signing != Algorithm::AesGmac,
        seal: false,
        logon: Some(Arc::clone(logon)),
    };
    let status = if binds {
        binding_error(negotiated, agreed)
    } else {
        gone.0
    };
    Some((status, security))
}

/// Returns why a session negotiated as `theirs` cannot be bound to a connection negotiated as
/// `ours`.
fn binding_error(ours: &Negotiated, theirs: &Negotiated) -> Status {
    let gmac = |n: &Negotiated| n.signing == Algorithm::AesGmac;
    if gmac(theirs) && !gmac(ours) {
        Status::REQUEST_OUT_OF_SEQUENCE
    } else if ours.dialect < Dialect::Smb300 {
        Status::REQUEST_NOT_ACCEPTED
    } else if gmac(ours) && !gmac(theirs) {
        Status::NOT_SUPPORTED
    } else if ours.dialect != theirs.dialect
        || ours.client_guid != theirs.client_guid
        || ours.cipher != theirs.cipher
    {
        Status::INVALID_PARAMETER
    } else {
        Status::REQUEST_NOT_ACCEPTED
    }
}

/// Checks that the message may refer to this session.
fn check(
    sealed: Option<&Arc<Logon>>,
    logon: Option<&Arc<Logon>>,
    header: &Header,
    message: &[u8],
) -> Result<(), Status> {
    let Some(logon) = logon else {
        return Ok(());
    };
    if let Some(sealed) = sealed {
        let is_theirs = sealed.id == logon.id;
        return if is_theirs {
            Ok(())
        } else {
            Err(Status::ACCESS_DENIED)
        };
    }
    let signed = header.has(flags::SIGNED);
    let verify = || {
        logon
            .keys
            .signer
            .verify(message, header.message_id, Role::Client)
    };
    if logon.sealed || (signed && !verify()) || (!signed && logon.signing_required) {
        return Err(Status::ACCESS_DENIED);
    }
    if signed {
        logon.is_new_setup(message);
    }
    Ok(())
}

fn step(
    conn: &Arc<Conn>,
    worker: &Worker,
    negotiated: &Negotiated,
    member: Option<&Arc<Member>>,
    security: &Security,
    asked_id: u64,
    message: &[u8],
) -> Result<Outcome, Status> {
    let shared = &conn.link.shared;
    let config = &shared.config;
    let request = Request::parse(message).map_err(|_| Status::INVALID_PARAMETER)?;
    if config.encryption_required && negotiated.cipher.is_none() {
        let reason = "it cannot encrypt";
        warn!(target: "SMB", address = %conn.link.peer, reason, "logon refused");
        return Err(Status::ACCESS_DENIED);
    }
    let (id, mut setup) = begin_or_go_on(conn, negotiated, member.is_some(), asked_id)?;
    setup.preauth.mix(&[message]);
    let claimed = claimed(conn, worker, request.token)?;
    let host = Host {
        name: &config.name,
        users: &config.users,
        now: (config.clock)(),
        challenge: crypto::random(),
    };
    match setup.exchange.step(request.token, &host) {
        Ok(Step::Continue(token)) => {
            conn.setups.lock().insert(id, setup);
            Ok(Outcome {
                session_id: id,
                status: Status::MORE_PROCESSING_REQUIRED,
                body: setup::response(0, &token),
                security: security.clone(),
            })
        }
        Ok(Step::Done(token, who)) => {
            if let Some(claimed) = claimed {
                shared.guesses.right(claimed.attempt);
            }
            match member {
                Some(member) => logged_on_again(conn, member, security, &who, &token),
                None => logged_on(conn, negotiated, id, &setup.preauth, &request, &who, &token),
            }
        }
        Err(refused) => {
            end_again(conn, member);
            log_refused(conn, claimed.as_ref(), refused);
            if let Some(claimed) = claimed {
                shared.guesses.wrong(claimed.attempt);
            }
            Err(match refused {
                Refused::Malformed => Status::INVALID_PARAMETER,
                Refused::Logon => Status::LOGON_FAILURE,
            })
        }
    }
}

/// The user name in a token whose password is about to be checked.
struct Claimed {
    name: String,
    is_known: bool,
    attempt: Attempt,
}

/// Returns the user name in a token, if the token has to prove it. First waits until the attempt
/// may be made.
///
/// # Errors
/// `LOGON_FAILURE` if the client disconnects meanwhile.
fn claimed(conn: &Arc<Conn>, worker: &Worker, token: &[u8]) -> Result<Option<Claimed>, Status> {
    let Some(name) = auth::claimed(token) else {
        return Ok(None);
    };
    let mut users = conn.link.shared.config.users.iter();
    let place = users.position(|user| auth::is_called(user, &name));
    let mut passed = false;
    // Other sessions of the connection go on meanwhile. One thread is enough for all logons that
    // wait.
    let waits = || {
        if !conn.members.is_empty() && !conn.logon_waits.swap(true, Ordering::Relaxed) {
            passed = true;
            // If no thread can take the turn, they wait too.
            let _ = worker.pass(&conn.link.turn);
        }
    };
    let is_over = || conn.link.is_closed() || conn.link.has_hung_up();
    let guesses = &conn.link.shared.guesses;
    let attempt = guesses.await_turn(conn.link.peer, place, &name, waits, is_over);
    if passed {
        conn.logon_waits.store(false, Ordering::Relaxed);
    }
    let claimed = attempt.map(|attempt| Claimed {
        name,
        is_known: place.is_some(),
        attempt,
    });
    claimed.map(Some).ok_or(Status::LOGON_FAILURE)
}

/// Logs why a logon was refused. The client is told only that it was.
fn log_refused(conn: &Conn, claimed: Option<&Claimed>, refused: Refused) {
    let reason = match (refused, claimed) {
        (Refused::Malformed, _) => "malformed",
        (_, None) => "no way to log on in common",
        (_, Some(claimed)) if claimed.name.is_empty() => "no user, or no NTLMv2",
        (_, Some(claimed)) if claimed.is_known => "wrong password",
        (_, Some(_)) => "no such user",
    };
    let user = claimed.map_or("", |claimed| &claimed.name);
    let user = escape_short(user.as_bytes());
    warn!(target: "SMB", user, address = %conn.link.peer, reason, "logon refused");
}

/// Returns the setup of session `id`, or a new one.
fn begin_or_go_on(
    conn: &Conn,
    negotiated: &Negotiated,
    is_again: bool,
    id: u64,
) -> Result<(u64, Setup), Status> {
    let mut setups = conn.setups.lock();
    if let Some(setup) = setups.remove(&id) {
        return Ok((id, setup));
    }
    if id != 0 && !is_again {
        return Err(Status::USER_SESSION_DELETED);
    }
    let logons = conn.members.count();
    if setups.len() >= SETUPS_MAX || logons >= conn.link.limits().sessions {
        conn.link.log_limit("sessions", "");
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    let setup = Setup {
        exchange: Exchange::default(),
        preauth: negotiated.preauth,
    };
    let id = if id == 0 {
        conn.register.new_session_id()
    } else {
        id
    };
    Ok((id, setup))
}

/// Ends a session after a failed attempt to log on to it again.
fn end_again(conn: &Conn, member: Option<&Arc<Member>>) {
    if let Some(member) = member {
        conn.end_logon(member, false);
    }
}

/// Completes a repeated logon. The keys stay the same.
fn logged_on_again(
    conn: &Conn,
    member: &Member,
    security: &Security,
    who: &LoggedOn,
    token: &[u8],
) -> Result<Outcome, Status> {
    let logon = &member.logon;
    let user = conn.link.shared.config.users.get(who.user);
    if user.is_none_or(|user| user.name != logon.user) {
        conn.end_logon(member, false);
        return Err(Status::ACCESS_DENIED);
    }
    Ok(Outcome {
        session_id: logon.id,
        status: Status::SUCCESS,
        body: setup::response(session_flags(logon), token),
        security: Security {
            sign: true,
            ..security.clone()
        },
    })
}

fn logged_on(
    conn: &Arc<Conn>,
    negotiated: &Negotiated,
    id: u64,
    preauth: &Preauth,
    request: &Request<'_>,
    who: &LoggedOn,
    token: &[u8],
) -> Result<Outcome, Status> {
    let (link, shared) = (&conn.link, &conn.link.shared);
    let config = &shared.config;
    let user = config.users.get(who.user).ok_or(Status::LOGON_FAILURE)?;
    let keys = Keys::derive(
        &who.session_key,
        negotiated.dialect,
        negotiated.signing,
        negotiated.cipher,
        preauth,
    );
    let client_requires = u16::from(request.security_mode) & security_mode::SIGNING_REQUIRED != 0;
    let logon = Arc::new(Logon::new(
        id,
        user,
        shared.budget(who.user),
        keys,
        config.signing_required || client_requires,
        config.encryption_required,
    ));
    end_previous(conn, request.previous_session_id, &logon);
    let max = link.limits().connections_per_user;
    let place = conn.members.place_of(&logon.budget, max);
    let member = Member::new(Arc::clone(&logon));
    member.takes(place.ok_or(Status::INSUFFICIENT_RESOURCES)?);
    let member = Arc::new(member);
    conn.members.insert(Arc::clone(&member));
    conn.register.add_logon(conn, &member);
    let user = escape_short(logon.user.as_bytes());
    info!(target: "SMB", user, address = %conn.link.peer, dialect = ?negotiated.dialect, "logon");
    Ok(Outcome {
        session_id: id,
        status: Status::SUCCESS,
        body: setup::response(session_flags(&logon), token),
        security: Security {
            logon: Some(logon),
            sign: true,
            seal: false,
        },
    })
}

fn session_flags(logon: &Logon) -> u16 {
    if logon.sealed { ENCRYPT_DATA } else { 0 }
}

/// Ends the client's earlier session, whose connection it has lost.
fn end_previous(conn: &Arc<Conn>, id: u64, logon: &Logon) {
    if id == 0 || id == logon.id {
        return;
    }
    if let Some((theirs, previous)) = conn.register.find_logon(id)
        && previous.logon.user == logon.user
    {
        theirs.end_logon(&previous, true);
    }
}
