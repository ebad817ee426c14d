//! The states that a power cut can leave of what was recorded, and what must
//! hold in each.

use crate::raw::Raw;
use std::sync::Arc;
use volary_block::{MemDevice, Request};
use volary_core::{Answer, Check, CheckMode, Finding, Format, Options, Quiet, Time};
use volary_fat::FAT;
use volary_testkit::rng::Rng;

/// Every sector of the writes since the last flush.
pub(crate) fn sectors(write: &Request) -> Vec<(usize, &[u8])> {
    let Request::Write { offset, data } = write else {
        return Vec::new();
    };
    let at = *offset as usize;
    // Writes need not begin or end at a sector; the disk writes whole ones.
    let mut out = Vec::new();
    let mut done = 0;
    while done < data.len() {
        let len = (512 - (at + done) % 512).min(data.len() - done);
        out.push((at + done, &data[done..done + len]));
        done += len;
    }
    out
}

/// Returns the image after `fsck -p`, which must leave nothing and make it sound.
pub(crate) fn preen(image: &[u8]) -> Result<Arc<MemDevice>, String> {
    let dev = Arc::new(MemDevice::from_vec(image.to_vec()));
    let how = Check {
        mode: CheckMode::Preen,
        now: Time::from_secs(1_700_000_000),
        options: Options::new(),
    };
    let mut said = Vec::new();
    let mut tell = |f: &Finding| {
        said.push(format!("{f:?}"));
        Answer::Yes
    };
    let report = FAT.check(dev.clone(), &how, &mut tell, &Quiet);
    let report = report.map_err(|e| format!("check: {e}"))?;
    if report.left() > 0 {
        return Err(format!("preen left {}: {said:#?}", report.left()));
    }
    Raw::new(&dev.to_vec()).walk()?;
    Ok(dev)
}

/// Calls `look` with each state that a power cut can leave of recorded
/// requests, and the number of the request: after each write, and `subsets`
/// times with some of the sectors since the flush. How many states.
pub(crate) fn cuts(
    base: Vec<u8>,
    requests: &[Request],
    seed: u64,
    subsets: usize,
    mut look: impl FnMut(&[u8], usize),
) -> usize {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let (mut durable, mut now) = (base.clone(), base);
    let mut open: Vec<(usize, &[u8])> = Vec::new();
    let mut states = 0;
    for (at, request) in requests.iter().enumerate() {
        if !matches!(request, Request::Write { .. } | Request::Flush) {
            continue;
        }
        let new = sectors(request);
        for (offset, data) in &new {
            now[*offset..*offset + data.len()].copy_from_slice(data);
        }
        open.extend(new);
        look(&now, at);
        states += 1;
        for _ in 0..subsets.min(open.len().saturating_sub(1)) {
            let odds = 1 + rng.below(4);
            let mut some = durable.clone();
            for (offset, data) in open.iter().filter(|_| rng.one_in(odds + 1)) {
                some[*offset..*offset + data.len()].copy_from_slice(data);
            }
            look(&some, at);
            states += 1;
        }
        if *request == Request::Flush {
            open.clear();
            durable.clone_from(&now);
        }
    }
    states
}

/// Calls `look` with every state that a power cut can leave of recorded
/// requests, and the number of the last one. How many states.
///
/// # Panics
/// If more than 16 sectors are on their way at once.
pub(crate) fn all_cuts(
    mut durable: Vec<u8>,
    requests: &[Request],
    mut look: impl FnMut(&[u8], usize),
) -> usize {
    let mut open: Vec<(usize, &[u8])> = Vec::new();
    let mut states = 0;
    let mut subsets = |durable: &[u8], open: &[(usize, &[u8])], at: usize| {
        assert!(open.len() <= 16, "{} sectors at once", open.len());
        for chosen in 0..1u32 << open.len() {
            let mut some = durable.to_vec();
            for (i, (offset, data)) in open.iter().enumerate() {
                if chosen >> i & 1 == 1 {
                    some[*offset..*offset + data.len()].copy_from_slice(data);
                }
            }
            look(&some, at);
            states += 1;
        }
    };
    for (at, request) in requests.iter().enumerate() {
        open.extend(sectors(request));
        if *request == Request::Flush {
            subsets(&durable, &open, at);
            for (offset, data) in open.drain(..) {
                durable[offset..offset + data.len()].copy_from_slice(data);
            }
        }
    }
    subsets(&durable, &open, requests.len());
    states
}

pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("VOLARY_SEED") {
        Ok(seed) => vec![seed.parse().expect("VOLARY_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}
