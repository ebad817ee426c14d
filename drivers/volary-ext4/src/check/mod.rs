//! Checks a volume, with what its journal holds. Nothing is mended: the driver reads only, so far. May use
//! all rooms but `look`'s `dump` and `map`.

mod inodes;
mod maps;
mod names;

use crate::attached::open::{How, open};
use crate::disk::ondisk::{incompat, state};
use crate::disk::replica;
use crate::disk::volume::{self, Volume};
use crate::look::info::LOOK_MEMORY;
use crate::scan::scan;
use crate::store::Store;
use inodes::Inodes;
use std::sync::Arc;
use volary_block::ByReplica;
use volary_core::{
    Answer, BlockDevice, Check, CheckReport, Fact, Finding, Kind, Progress, Result, Severity,
};
use volary_ondisk::reporter::{Reporter, damage, instead, met};

/// Goes through everything, and tells what contradicts itself.
///
/// # Errors
/// `Invalid` for an option; `Corrupt` if there is no volume to speak of; `Unsupported`; `Interrupted`; `Io`.
pub(crate) fn check(
    dev: &Arc<dyn BlockDevice>,
    check: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let how = How::of(&check.options)?;
    let mut findings = Reporter::new(check, report, progress);
    let replica = replica::find(&**dev)?;
    if let Some(replica) = &replica {
        findings.tell(&Finding {
            code: "superblock",
            ..instead(replica)
        });
    }
    let dev = ByReplica::laid(dev.clone(), replica.as_ref());
    let store = opened(&dev, how, &mut findings)?;
    head(&store, &mut findings);
    let mut inodes = Inodes::new(&store, &mut findings);
    scan(&store, &mut inodes)?;
    let mut seen = inodes.seen();
    names::check(&store, &mut seen, &mut findings)?;
    names::links(&store, &seen, &mut findings);
    // What fast commits changed is in no bitmap yet.
    if store.fast().is_empty() && how.replays {
        maps::check(&store, &seen, &mut findings)?;
    }
    Ok(CheckReport {
        found: findings.found(),
        mended: 0,
        written: 0,
        facts: vec![
            Fact::number("files", seen.files, ""),
            Fact::number("directories", seen.dirs, ""),
        ],
    })
}

/// Opens the volume; what its superblock's checksum or its journal hide is told, and the rest looked at.
fn opened(dev: &Arc<dyn BlockDevice>, how: How, findings: &mut Reporter<'_>) -> Result<Store> {
    let volume = Volume::read(&**dev, false)?;
    let has_sum = how.is_verified && volume.has_sums();
    if has_sum && let Err(e) = volume::check_sum(&volume.raw) {
        findings.tell(&Finding {
            code: "superblock",
            ..met(&e)
        });
    }
    match open(dev, how, LOOK_MEMORY) {
        Ok(store) => Ok(store),
        Err(e) if e == Kind::Io => Err(e),
        Err(e) => {
            let is_of_superblock = Volume::read(&**dev, how.is_verified).is_err();
            if !is_of_superblock {
                findings.tell(&Finding {
                    code: "journal",
                    ..met(&e)
                });
            }
            let volume = Volume {
                is_verified: how.is_verified,
                ..volume
            };
            Ok(Store::plain(dev.clone(), volume, LOOK_MEMORY))
        }
    }
}

/// What the superblock says of the volume's state.
fn head(store: &Store, findings: &mut Reporter<'_>) {
    let volume = store.volume();
    let size = volume.blocks.saturating_mul(volume.block);
    if size > volume.device {
        let message = format!("the volume has {size} bytes, the device {}", volume.device);
        findings.tell(&Finding {
            code: "truncated",
            ..damage(1028, message)
        });
    }
    let bits = volume.raw.s_state.get();
    let state = |message: &str| damage(1024 + 0x3a, message);
    let note = |message: &str| Finding {
        severity: Severity::Note,
        ..state(message)
    };
    if let Some(replayed) = store.blocks().replayed() {
        let words = format!(
            "the journal has {} transactions that are not in their places yet; what follows is \
             the volume with them",
            replayed.transactions
        );
        findings.tell(&Finding {
            code: "replay",
            ..note(&words)
        });
    } else if volume.has_incompat(incompat::RECOVER) {
        findings.tell(&Finding {
            code: "replay",
            ..note("the journal may have to be replayed")
        });
    } else if bits & state::CLEAN == 0 {
        findings.tell(&Finding {
            code: "not-clean",
            ..note("the volume was not cleanly left")
        });
    }
    if bits & state::ERRORS != 0 {
        findings.tell(&Finding {
            code: "errors",
            ..state("Linux has found errors on the volume")
        });
    }
}
