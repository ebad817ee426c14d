//! Phase 4: reference counts.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::plan::Plan;
use crate::inodes::blocks::Reader;
use volary_core::{FileKind, Finding, Severity};

/// Compares the links that were found with the counts in the inodes.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) {
    for (&ino, seen) in &inodes.all {
        let said = u32::try_from(seen.nlink).unwrap_or(0);
        let at = reader.volume.inode_at(ino.into()).unwrap_or(0);
        if seen.kind == FileKind::Dir && seen.parent == 0 || said == seen.found && said > 0 {
            continue;
        }
        let message = match seen.found {
            0 => format!("inode {ino} is in use, and no name leads to it"),
            found => format!("inode {ino} has {found} links, and says {}", seen.nlink),
        };
        let (code, severity) = match seen.found {
            0 => ("unreferenced", Severity::Crash),
            found if found < said => ("link-count", Severity::Crash),
            _ => ("link-count", Severity::Damage),
        };
        let wanted = findings.tell(&Finding {
            code,
            ..finding(severity, at, message)
        });
        match seen.found {
            _ if !wanted => {}
            0 if findings.frees_unreferenced() => plan.inode(ino).free = true,
            0 => {
                plan.lost.insert(ino);
            }
            found => plan.inode(ino).links = i16::try_from(found).ok(),
        }
    }
}
