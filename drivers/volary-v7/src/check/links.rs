//! Phase 4: reference counts.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::plan::Plan;
use crate::disk::blocks::Reader;
use crate::disk::ondisk::{BAD_INO, ROOT_INO};
use volary_core::{FileKind, Finding, Severity};

/// Compares the links that were found with those that inodes say they have.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) {
    for (&ino, seen) in &inodes.all {
        let is_dir = seen.kind == FileKind::Dir;
        // Directories without a name were told of.
        if ino == BAD_INO || is_dir && ino != ROOT_INO && seen.parent == 0 {
            continue;
        }
        let found = match is_dir {
            true => seen.children + 2,
            false => seen.names,
        };
        let said = u32::from(seen.nlink);
        if said == found && said > 0 {
            continue;
        }
        let message = match found {
            0 => format!("inode {ino} is in use, and no name leads to it"),
            found => format!("inode {ino} has {found} links, and says {said}"),
        };
        let (code, severity) = match found {
            0 => ("unreferenced", findings.severity()),
            found if found < said => ("link-count", findings.severity()),
            _ => ("link-count", Severity::Damage),
        };
        let is_mended = findings.tell(&Finding {
            code,
            ..finding(severity, reader.volume.inode_at(ino), message)
        });
        match found {
            _ if !is_mended => {}
            0 if findings.frees_unreferenced() => plan.inode(ino).free = true,
            0 => {
                plan.lost.insert(ino);
            }
            found => plan.inode(ino).links = Some(u16::try_from(found).unwrap_or(u16::MAX)),
        }
    }
}
