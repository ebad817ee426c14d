//! Determines by what a new open can be found again, and for how long (MS-SMB2 3.3.5.9.6,
//! 3.3.5.9.10).

use super::request::Request;
use crate::files::call::Call;
use crate::files::open::Claim;
use crate::wire::Dialect;
use std::time::Duration;

/// The lifetime of a durable open if the client requests none.
const TIME_USUAL: Duration = Duration::from_secs(60);

/// A context of the response.
type Context = (&'static [u8; 4], Vec<u8>);

pub(super) fn is_v2(call: &Call<'_>) -> bool {
    call.link.dialect() >= Dialect::Smb300
}

/// Returns the claim by which a new open can be found again, if any, and the context that tells the
/// client so. `durable` says whether the open qualifies.
pub(super) fn of(
    call: &Call<'_>,
    request: &Request<'_>,
    durable: bool,
) -> (Option<Box<Claim>>, Option<Context>) {
    let claim = claim(call, request, durable);
    let context = granted(claim.as_deref());
    (claim, context)
}

/// Returns the claim by which the open can be found again, if any. `durable` says whether the open
/// qualifies.
fn claim(call: &Call<'_>, request: &Request<'_>, durable: bool) -> Option<Box<Claim>> {
    let v2 = request.asked.durable_v2.filter(|_| is_v2(call));
    if v2.is_none() && !request.asked.durable {
        return None;
    }
    let limits = &call.tree.limits();
    let wanted = match v2.map_or(0, |v2| v2.timeout) {
        0 => TIME_USUAL,
        millis => Duration::from_millis(millis.into()),
    };
    let is_kept = durable && limits.durable_opens > 0;
    Some(Box::new(Claim {
        user: call.logon.user.clone(),
        client: call.link.client_guid(),
        guid: v2.map(|v2| v2.guid),
        app: request.asked.app.filter(|_| v2.is_some()),
        time: is_kept.then(|| wanted.min(limits.durable_time)),
    }))
}

/// Returns the context that tells the client that its open is durable.
pub(super) fn granted(claim: Option<&Claim>) -> Option<Context> {
    let claim = claim?;
    let time = claim.time?;
    if claim.guid.is_none() {
        return Some((b"DHnQ", vec![0; 8]));
    }
    let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let mut data = millis.to_le_bytes().to_vec();
    data.resize(8, 0);
    Some((b"DH2Q", data))
}
