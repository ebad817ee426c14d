//! The superblock that a check uses: the first, or a replica.

use super::findings::{Findings, finding, wrong_hash};
use crate::disk::hash::is_superblock_right;
use crate::disk::replica::is_replica;
use crate::disk::superblock::Found;
use crate::disk::volume::Volume;
use volary_block::Skipping;
use volary_core::{BlockDevice, Error, Finding, Progress, Result, Severity};

/// How far a replica is searched for, in bytes: past the first two groups of any volume. A sparse
/// image can be too long to read whole.
const SEARCH_MAX: u64 = 16 << 30;
/// Bytes that are searched between two checks for an interrupt.
const SEARCH_STEP: usize = 16 << 20;

/// The superblock that a check uses, as if it stood in the first one's place.
pub(super) struct Chosen {
    pub(super) volume: Volume,
    /// Why a replica is used, or `None` if this is the first superblock.
    instead: Option<String>,
}

impl Chosen {
    /// Chooses the superblock. The first one is used if it is valid and agrees with the one at a
    /// sector that the user names. Otherwise the named one is used, or else the first valid
    /// replica.
    ///
    /// A superblock that cannot be read is invalid.
    ///
    /// # Errors
    /// `Corrupt` if there is no valid one; `Interrupted`; `Io`.
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

    /// Uses the superblock at byte `at` in the place of the first.
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

    /// Returns whether a replica is used in the place of the first superblock.
    pub(super) fn is_instead(&self) -> bool {
        self.instead.is_some()
    }

    /// Returns whether this is the first superblock, with a wrong check hash. It is then unknown
    /// how the volume was left.
    pub(super) fn is_torn(&self) -> bool {
        self.instead.is_none() && !is_superblock_right(&self.volume.found)
    }

    /// Reports that a replica is used, or that the hash is wrong. Returns whether the first
    /// superblock is to be written anew.
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

/// Returns the first valid replica, and where it is.
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

/// Returns whether two superblocks agree in the fields that never change.
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
