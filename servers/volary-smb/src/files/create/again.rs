//! CREATE requests about opens that exist already. They reconnect a durable open (MS-SMB2
//! 3.3.5.9.7, 3.3.5.9.12), repeat an earlier request (3.3.5.9.10), or come from a program that
//! moved to another machine (3.3.5.9.13).

use super::contexts::{self, Back};
use super::durable;
use super::request::{Request, Response};
use crate::answer::{Answer, Failure};
use crate::files::attrs;
use crate::files::call::Call;
use crate::files::names::Path;
use crate::files::open::{CreateName, File, Named, Pending, end_durable, level, level_of_bits};
use crate::files::oplock;
use crate::wire::Dialect;
use crate::wire::FileId;
use crate::wire::Status;
use crate::wire::create::Action;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::same_name;

/// The result of looking for an existing open.
pub(super) enum Before<'a> {
    /// The answer to the request, which needs no new open.
    Answered(Answer),
    /// A new open is needed. It reserves this name meanwhile.
    Nothing(Option<Pending<'a>>),
}

/// Checks whether the request concerns an existing open.
///
/// # Errors
/// `OBJECT_NAME_NOT_FOUND`, `INVALID_PARAMETER` and `ACCESS_DENIED` as [`found_again`];
/// `DUPLICATE_OBJECTID` for another request with the same name; `FILE_NOT_AVAILABLE` if that
/// request is still in progress.
pub(super) fn before<'c>(
    call: &mut Call<'c>,
    request: &Request<'_>,
) -> Result<Before<'c>, Failure> {
    if let Some(back) = request.asked.back
        && (back.guid.is_none() || call.link.dialect() >= Dialect::Smb300)
    {
        return found_again(call, request, back).map(|body| Before::Answered(Ok(body)));
    }
    let Some(asked) = request.asked.durable_v2.filter(|_| durable::is_v2(call)) else {
        return Ok(Before::Nothing(None));
    };
    let name = CreateName {
        user: call.logon.user.clone(),
        client: call.link.client_guid(),
        guid: asked.guid,
    };
    let tree = call.tree;
    match tree.common.durables.begin(name) {
        Named::New(pending) => {
            make_way(call, request)?;
            Ok(Before::Nothing(Some(pending)))
        }
        _ if !call.replays => Err(Status::DUPLICATE_OBJECTID.into()),
        Named::UnderWay => Err(Status::FILE_NOT_AVAILABLE.into()),
        // If the open was used already, the client had received the answer.
        Named::Done(file) if !file.is_fresh.load(Ordering::Relaxed) => Ok(Before::Nothing(None)),
        Named::Done(file) => replayed(call, request, &file).map(|body| Before::Answered(Ok(body))),
    }
}

/// Reconnects a durable open.
///
/// # Errors
/// `OBJECT_NAME_NOT_FOUND` if no disconnected open has this id, name and lease; `ACCESS_DENIED` for
/// another user; `INVALID_PARAMETER` for a lease under another path.
fn found_again(call: &mut Call<'_>, request: &Request<'_>, back: Back) -> Answer {
    let missing = Status::OBJECT_NAME_NOT_FOUND;
    let common = &call.tree.common;
    common.durables.await_kept(back.id.persistent);
    let old = common.durables.take(back.id.persistent, missing, |file| {
        let claim = file.claim.as_ref().ok_or(missing)?;
        // Version 1 of the request can also reconnect opens of version 2.
        if back
            .guid
            .is_some_and(|guid| guid != claim.guid.unwrap_or_default())
        {
            return Err(missing);
        }
        if claim.user != call.logon.user {
            return Err(Status::ACCESS_DENIED);
        }
        check_lease(call, request, file)?;
        let named = file.lease.is_none() || is_at(request, file);
        named.then_some(()).ok_or(Status::INVALID_PARAMETER)
    })?;
    let file = Arc::new(old.moved(
        FileId {
            persistent: old.id.persistent,
            volatile: call.tree.files.next_volatile(),
        },
        call.sequence,
        Arc::downgrade(call.tree) as _,
    ));
    common.leave(&old);
    common.enter(&file);
    if let Some(breaker) = &file.breaker {
        breaker.follow(oplock::way_of(call, file.id));
    }
    call.tree.files.insert(Arc::clone(&file));
    let session = &call.tree.session;
    let level = match (file.lease, file.oplock) {
        (Some(_), _) => level::LEASE,
        (None, Some(key)) => {
            let held = session.lease_state(key).map(|held| held.granted);
            level_of_bits(held.unwrap_or_default())
        }
        (None, None) => level::NONE,
    };
    answer(call, request, &file, Action::Opened, level, None)
}

/// Checks that the request has the file's lease, or neither has one.
///
/// # Errors
/// `OBJECT_NAME_NOT_FOUND` if the leases differ.
fn check_lease(call: &Call<'_>, request: &Request<'_>, file: &File) -> Result<(), Status> {
    let same = match (file.lease, request.asked.lease) {
        (Some(held), Some(asked)) => held == oplock::lease_key(call, asked.key),
        (None, None) => true,
        _ => false,
    };
    same.then_some(()).ok_or(Status::OBJECT_NAME_NOT_FOUND)
}

/// Returns whether the request's path is the file's current one.
fn is_at(request: &Request<'_>, file: &File) -> bool {
    let Ok(asked) = Path::parse(request.name) else {
        return false;
    };
    let same = |(a, b): (&Vec<u8>, &Vec<u8>)| same_name(a, b);
    let path = file.path.lock().components();
    asked.components.len() == path.len() && asked.components.iter().zip(&path).all(same)
}

/// Answers a repeated request as before, but grants the oplock of the repetition, as Windows does.
///
/// # Errors
/// `ACCESS_DENIED` for another user, and if it asks for another lease; `FILE_NOT_AVAILABLE` if the
/// open does not belong to this tree.
fn replayed(call: &mut Call<'_>, request: &Request<'_>, file: &Arc<File>) -> Answer {
    let claim = file.claim.as_ref().ok_or(Status::ACCESS_DENIED)?;
    let leased = request.lease(call) == file.lease;
    if claim.user != call.logon.user || !leased {
        return Err(Status::ACCESS_DENIED.into());
    }
    if call.tree.files.get(file.id).is_none() {
        return Err(Status::FILE_NOT_AVAILABLE.into());
    }
    let level = match file.lease {
        Some(_) => level::LEASE,
        None => request.oplock,
    };
    let durable = matches!(level, level::LEASE | level::BATCH);
    let durable = durable::granted(file.claim.as_deref()).filter(|_| durable);
    answer(call, request, file, file.action, level, durable)
}

fn answer(
    call: &mut Call<'_>,
    request: &Request<'_>,
    file: &Arc<File>,
    action: Action,
    oplock: u8,
    durable: Option<(&'static [u8; 4], Vec<u8>)>,
) -> Answer {
    let session = &call.tree.session;
    let attr = session.getattr_open(file.open)?;
    let held = file.lease.and_then(|key| session.lease_state(key).ok());
    let mut replies = Vec::from_iter(durable);
    if let (Some(asked), Some(held)) = (&request.asked.lease, &held) {
        let base = file.breaker.as_ref().and_then(|breaker| breaker.base());
        replies.push((b"RqLs", contexts::lease_granted(asked, held, base)));
    }
    call.related.file = Some(file.id);
    let response = Response {
        oplock,
        action,
        facts: attrs::facts(&call.tree.common, &attr),
        id: file.id,
        contexts: contexts::emit(&replies),
    };
    Ok(response.emit())
}

/// Closes the open that a program had on another machine before it moved to this one.
///
/// # Errors
/// Those of the path.
fn make_way(call: &Call<'_>, request: &Request<'_>) -> Result<(), Failure> {
    let Some(app) = request.asked.app.filter(|app| *app != [0; 16]) else {
        return Ok(());
    };
    Path::parse(request.name)?;
    let common = &call.tree.common;
    for file in common.durables.of_app(app) {
        let Some(claim) = &file.claim else { continue };
        let elsewhere = claim.client != call.link.client_guid();
        if elsewhere && claim.user == call.logon.user && is_at(request, &file) {
            end_durable(common, &file);
        }
    }
    Ok(())
}
