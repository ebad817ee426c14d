//! Who owns the root directory of a new volume.

use crate::clock;
use crate::exit::{Done, Fail};
use crate::log::warn;
use crate::verbs::attrs::Owner;
use crate::verbs::change::{gid, uid};
use crate::verbs::info::failed;
use crate::volumes::{Use, attach_with};
use std::sync::Arc;
use volary::{
    Attach, BlockDevice, Commit, Cred, Fact, Follow, Format, Fs, Kind, Options, SetAttr, Source,
    Volume, VolumeOptions,
};

/// An owner that a new volume is given once it is made.
pub(super) struct Given {
    uid: u32,
    gid: u32,
    /// Somebody asked for this one.
    is_asked: bool,
}

/// Returns who is to own the root: whom `asked` names, or who runs this. A format that has options for
/// it is told by them; `None` where nothing is left to do.
///
/// # Errors
/// Of the command line, if `asked` is for a volume that keeps no owners.
pub(super) fn of(
    asked: Option<Owner>,
    format: &dyn Format,
    kind: &str,
    options: &mut Options,
) -> Done<Option<Given>> {
    let has = |name: &str| format.make_options().iter().any(|spec| spec.name == name);
    let flag = options.flag("unix", false);
    let keeps = !has("unix") || flag.map_err(|e| Fail::usage(format!("-o: {e}")))?;
    let given = Given {
        uid: asked.and_then(|owner| owner.uid).unwrap_or_else(uid),
        gid: asked.and_then(|owner| owner.gid).unwrap_or_else(gid),
        is_asked: asked.is_some(),
    };
    match keeps {
        false if given.is_asked => {
            let words = format!("--owner: a volume of {kind} keeps owners with --unix only");
            return Err(Fail::usage(words));
        }
        false => return Ok(None),
        true => {}
    }
    if has("owner") {
        for (name, id) in [("owner", given.uid), ("group", given.gid)] {
            if given.is_asked || options.get(name).is_none() {
                options.set(name, id.to_string());
            }
        }
        return Ok(None);
    }
    // Root's it is in any case, or whose it is mounted by.
    let is_needed = given.is_asked || given.uid != 0 || given.gid != 0;
    Ok(is_needed.then_some(given))
}

impl Given {
    /// Makes them the owner of the root on a volume that was just made.
    ///
    /// # Errors
    /// If somebody asked for it, why it cannot be; else that is a warning.
    pub(super) fn give(
        &self,
        source: &Source,
        dev: Arc<dyn BlockDevice>,
        format: &dyn Format,
    ) -> Done<Option<Fact>> {
        // Whoever opens it owns what has no owner: nobody, so that this one is kept.
        let how = Attach {
            uid: u32::MAX,
            gid: u32::MAX,
            ..attach_with(Options::new(), Use::Change)?
        };
        let done = format
            .attach(dev, &how)
            .and_then(|fs| self.chown(source, fs));
        match done {
            Ok(()) => {
                let owner = format!("{}:{}", self.uid, self.gid);
                Ok(Some(Fact::word("owner of the root", owner)))
            }
            Err(e) if self.is_asked => Err(match e.kind() {
                Kind::Unsupported | Kind::Invalid => {
                    let owner = format!("{}:{}", self.uid, self.gid);
                    Fail::usage(format!(
                        "--owner: this volume cannot keep {owner} as an owner"
                    ))
                }
                _ => failed(source, &e),
            }),
            Err(e) => {
                warn(&format!("{source}: the root directory is root's: {e}"));
                Ok(None)
            }
        }
    }

    fn chown(&self, source: &Source, fs: Fs) -> volary::Result<()> {
        let options = VolumeOptions {
            trust: true,
            commit: Commit::WhenAsked,
            ..VolumeOptions::new(source.to_string(), clock::now)
        };
        let volume = Volume::new(fs, options);
        let session = volume.session(Cred::root());
        let root = session.walk(b"/", Follow::No);
        let set = SetAttr {
            uid: Some(self.uid),
            gid: Some(self.gid),
            ..SetAttr::default()
        };
        let done = root.and_then(|root| session.setattr(root.node, &set));
        done.map(drop).and(volume.detach())
    }
}
