//! Checks what is stored twice: the boot sector, and the first records.

use crate::disk::ondisk::{BOOT_LEN, kind, number};
use crate::files::node::Node;
use crate::mft::record::Record;
use crate::store::Store;
use volary_core::{BlockDevice, Error, Finding, Kind, Result};
use volary_ondisk::reporter::{Reporter, damage, ends, met};

/// Compares replicas.
///
/// # Errors
/// `Io`.
pub(super) fn check(
    dev: &dyn BlockDevice,
    store: &Store,
    findings: &mut Reporter<'_>,
) -> Result<()> {
    sectors(dev, store, findings)?;
    place(store, findings)?;
    mirror(store, findings)
}

fn sectors(dev: &dyn BlockDevice, store: &Store, findings: &mut Reporter<'_>) -> Result<()> {
    let volume = store.volume();
    let at = volume.sectors.saturating_mul(volume.sector);
    if at.saturating_add(BOOT_LEN as u64) > volume.device {
        return Ok(());
    }
    let (mut first, mut second) = ([0; BOOT_LEN], [0; BOOT_LEN]);
    dev.read_at(0, &mut first)?;
    dev.read_at(at, &mut second)?;
    if first != second {
        let words = "the replica of the boot sector, in the volume's last sector, is another";
        findings.tell(&Finding {
            code: "boot-replica",
            ..damage(at, words)
        });
    }
    Ok(())
}

/// Compares the place of the mirror in the boot sector with the one in the mirror's record.
fn place(store: &Store, findings: &mut Reporter<'_>) -> Result<()> {
    let first = |store: &Store| {
        let mft = store.mft();
        let node = Node::of(mft, number::MIRROR)?;
        let stream = node.stream(mft, kind::DATA, &[])?.ok_or(Kind::Corrupt)?;
        Ok::<_, Error>((stream.at, stream.run(mft, 0)?.place))
    };
    match first(store) {
        Err(e) if ends(&e) => Err(e),
        Ok((at, place)) if place != Some(store.volume().mirror) => {
            let words = "the boot sector has the mirror in another place than its record";
            findings.tell(&Finding {
                code: "mirror",
                ..damage(at, words)
            });
            Ok(())
        }
        // The scan reports any damage of the record itself.
        _ => Ok(()),
    }
}

/// Compares the first records with their copies in the mirror.
fn mirror(store: &Store, findings: &mut Reporter<'_>) -> Result<()> {
    for number in 0..number::MIRRORED {
        let own = match store.mft().record_itself(number) {
            Err(e) if ends(&e) => return Err(e),
            Err(e) if e == Kind::Stale => continue,
            Err(e) => {
                // The scan reads this record from the mirror, and therefore does not see the
                // damage.
                findings.tell(&Finding {
                    code: "record",
                    ..met(&e)
                });
                continue;
            }
            Ok(own) => own,
        };
        let finding = match store.mft().mirrored(number) {
            Err(e) if ends(&e) => return Err(e),
            Err(e) => met(&e),
            Ok(other) if is_same(&own, &other) => continue,
            Ok(other) => damage(
                other.at,
                format!("record {number} is another in the mirror"),
            ),
        };
        findings.tell(&Finding {
            code: "mirror",
            ..finding
        });
    }
    Ok(())
}

/// Returns whether the used parts of both records are the same. What the update sequence put into
/// their sectors may differ.
fn is_same(own: &Record, other: &Record) -> bool {
    let part = |record: &Record| {
        let from = usize::from(record.head.attrs_offset.get());
        let to = usize::try_from(record.head.in_use.get()).unwrap_or(0);
        record.bytes(&(from..to)).to_vec()
    };
    let head = |record: &Record| {
        let head = &record.head;
        (
            head.sequence.get(),
            head.links.get(),
            head.flags.get(),
            head.in_use.get(),
        )
    };
    head(own) == head(other) && part(own) == part(other)
}
