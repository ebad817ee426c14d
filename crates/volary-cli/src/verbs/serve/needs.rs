//! What a server needs of this host once it runs, by its command line and configuration.

use super::config::Entry;
use super::plan::Plan;
use crate::sandbox::Needs;
use crate::volumes::At;

/// What the command line says of all volumes.
pub(super) struct Common<'a> {
    pub(super) options: &'a [String],
    pub(super) layers: &'a [String],
    pub(super) read_only: bool,
}

/// Returns what it takes to serve these volumes; everything else is given up.
pub(super) fn of(common: &Common<'_>, plan: &Plan, entries: &[Entry]) -> Needs {
    let mut needs = Needs::new();
    for entry in entries {
        let options = [common.options, &entry.options[..]].concat();
        let layers = [&entry.layers[..], common.layers].concat();
        // A text that names no volume is refused when it is opened.
        if let Ok(at) = At::parse(&entry.volume) {
            let read_only = common.read_only || entry.read_only;
            needs.volume(&at.source, &options, &layers, read_only);
        }
        if entry.mount.is_some() {
            needs.fuse();
        }
    }
    if let Some(nfs) = &plan.nfs {
        needs.nfs(nfs.listen.address.port());
        if nfs.listen.portmap {
            needs.listens_on(nfs.listen.portmapper().port());
        }
        nfs.key
            .directory()
            .iter()
            .for_each(|dir| needs.kept_in(dir));
    }
    if let Some(smb) = &plan.smb {
        needs.listens_on(smb.address.port());
    }
    needs
}
