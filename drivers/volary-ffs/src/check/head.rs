//! The superblock that a check goes by: the first, or a replica of it that is found.

use super::findings::{Findings, finding, wrong_hash};
use crate::disk::hash::is_superblock_right;
use crate::disk::replica::is_replica;
use crate::disk::superblock::Found;
use crate::disk::volume::Volume;
use volary_block::Skipping;
use volary_core::{BlockDevice, Error, Finding, Progress, Result, Severity};

/// How far a replica is looked for, in bytes: past the first two groups of any volume. An image with
/// holes can be longer than can be read.
const SEARCH_MAX: u64 = 16 << 30;
/// Bytes that are searched between two looks at whether anybody waits.
const SEARCH_STEP: usize = 16 << 20;

/// A superblock, as if it stood where the first does.
pub(super) struct Chosen {
    pub(super) volume: Volume,
    /// Why it is not the first, where it is none.
    instead: Option<String>,
}

impl Chosen {
    /// Returns the first superblock. Where it makes no sense, or differs from that at a sector which the
    /// user names: that one; if none is named, the first replica that makes sense.
    ///
    /// What cannot be read makes no sense.
    ///
    /// # Errors
    /// `Corrupt` if there is none; `Interrupted`; `Io`.
    pub(super) fn new(
        dev: &dyn BlockDevice,
        sector: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let size = dev.geometry().size;
        let dev = &Skipping::new(dev);
        let first = Found::choose(dev, None).and_then(|found| Volume::new(found, size));
        let first = first.map_err(|e| dev.take_failure().unwrap_or(e));
        let e = match (first, sector) {
            (Ok(volume), None) => return Ok(Self::first(volume)),
            (Err(e), None) => e,
            (first, Some(sector)) => {
                let named = Volume::new(Found::at_sector(dev, sector)?, size)?;
                let why = match first {
                    Ok(first) if is_alike(&first.found, &named.found) => {
                        return Ok(Self::first(first));
                    }
                    Ok(_) => "it is another than that".to_owned(),
                    Err(e) => e.to_string(),
                };
                return Ok(Self::instead(named, sector * 512, &why));
            }
        };
        let replica = replica(dev, progress)?;
        let (volume, at) = replica.ok_or_else(|| Error::note(e.kind(), e.to_string()))?;
        Ok(Self::instead(volume, at, &e.to_string()))
    }

    fn first(mut volume: Volume) -> Self {
        volume.hashes.is_lenient = true;
        Self {
            volume,
            instead: None,
        }
    }

    /// One at byte `at`, as if it stood where the first does.
    fn instead(mut volume: Volume, at: u64, why: &str) -> Self {
        let sector = at / 512;
        volume.found.at = volume.found.home();
        volume.hashes.is_lenient = true;
        let words = format!("the first superblock: {why}; that at sector {sector} is gone by");
        Self {
            volume,
            instead: Some(words),
        }
    }

    /// Returns whether it is not the first.
    pub(super) fn is_instead(&self) -> bool {
        self.instead.is_some()
    }

    /// Returns whether it is the first, with a wrong check hash: how the volume was left is not known.
    pub(super) fn is_torn(&self) -> bool {
        self.instead.is_none() && !is_superblock_right(&self.volume.found)
    }

    /// Tells that it is not the first, or torn; whether the first is to be written anew.
    pub(super) fn tell(&self, findings: &mut Findings<'_>) -> bool {
        let Some(words) = &self.instead else {
            return self.is_torn() && wrong_hash(findings, self.volume.found.at, "the superblock");
        };
        findings.tell(&Finding {
            code: "superblock",
            ..finding(Severity::Damage, self.volume.found.at, words.clone())
        })
    }
}

/// Returns the first replica that makes sense, and where it is.
fn replica(dev: &dyn BlockDevice, progress: &dyn Progress) -> Result<Option<(Volume, u64)>> {
    let size = dev.geometry().size;
    let end = size.min(SEARCH_MAX);
    let mut replica = None;
    for start in (0..end).step_by(SEARCH_STEP) {
        progress.progress("superblocks", start, end)?;
        let range = start..end.min(start + SEARCH_STEP as u64);
        Found::search(dev, range, &mut |found| {
            let at = found.at;
            let found = Found::read(dev, at)?;
            let volume = found.and_then(|found| Volume::new(found, size).ok());
            let volume = volume.filter(|volume| is_replica(volume, at));
            replica = volume.map(|volume| (volume, at));
            Ok(replica.is_none())
        })?;
        if replica.is_some() {
            break;
        }
    }
    Ok(replica)
}

/// Returns whether two superblocks agree in what does not change.
pub(super) fn is_alike(one: &Found, other: &Found) -> bool {
    let fixed = |found: &Found| {
        let raw = &found.raw;
        let sizes = [
            raw.fs_bsize,
            raw.fs_fsize,
            raw.fs_fpg,
            raw.fs_cgsize,
            raw.fs_cssize,
        ];
        (found.order, found.is_ufs2, raw.fs_ipg, sizes)
    };
    fixed(one) == fixed(other)
}
