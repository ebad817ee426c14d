//! Attributes of nodes, in the form of the interface.

use crate::attributes::form::{Form, Wsl};
use crate::attributes::secure::Secure;
use crate::attributes::security::Owned;
use crate::disk::ondisk::{fflag, kind};
use crate::files::node::Node;
use crate::mft::records::Mft;
use volary_core::{Attr, FileKind, Result, Time};

/// The owner of nodes for which the volume names none, and whether security descriptors are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) umask: u32,
    pub(crate) by_descriptors: bool,
}

/// A second, in units of 100 ns.
const STEPS: i64 = 10_000_000;
/// Seconds from 1601 to 1970.
const EPOCH: i64 = 11_644_473_600;

/// Converts a time in units of 100 ns since 1601.
pub(crate) fn time(stored: u64) -> Time {
    let stored = stored.cast_signed();
    let nanos = u32::try_from(stored.rem_euclid(STEPS) * 100).unwrap_or(0);
    Time::new(stored.div_euclid(STEPS) - EPOCH, nanos)
}

/// Two sizes: of the content, and of the space allocated for it.
type Sizes = (u64, u64);

/// The reader of nodes' attributes.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    mft: &'a Mft,
    secure: &'a Secure,
    owner: &'a Owner,
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(mft: &'a Mft, secure: &'a Secure, owner: &'a Owner) -> Self {
        Self { mft, secure, owner }
    }

    /// Returns the form of a node, and its attributes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn of(&self, node: &Node) -> Result<(Form, Attr)> {
        let (mft, owner) = (self.mft, self.owner);
        let wsl = Wsl::read(mft, node)?;
        let form = Form::of(mft, node, &wsl)?;
        let (standard, _) = node.standard()?;
        let (size, allocated) = self.sizes(node, &form)?;
        let owned = match owner.by_descriptors {
            true => self
                .secure
                .descriptor(mft, node)?
                .map(|own| Owned::of(&own))
                .unwrap_or_default(),
            false => Owned::default(),
        };
        let flags = standard.flags.get();
        let attr = Attr {
            node: node.id(),
            kind: form.kind(),
            mode: mode(&form, &wsl, &owned, owner),
            nlink: self.links(node)?,
            uid: wsl.uid.or(owned.uid).unwrap_or(owner.uid),
            gid: wsl.gid.or(owned.gid).unwrap_or(owner.gid),
            rdev: match form {
                Form::Special(_, rdev) => rdev,
                _ => 0,
            },
            size,
            allocated,
            io_size: u32::try_from(mft.volume().cluster).unwrap_or(4096),
            atime: time(standard.accessed.get()),
            mtime: time(standard.modified.get()),
            ctime: time(standard.changed.get()),
            btime: Some(time(standard.created.get())),
            change: node.record.head.lsn.get(),
            dos: u8::try_from(flags & fflag::DOS).ok(),
        };
        Ok((form, attr))
    }

    fn sizes(&self, node: &Node, form: &Form) -> Result<Sizes> {
        if let Form::Link(target) = form {
            return Ok((target.len() as u64, 0));
        }
        let stream = match node.is_dir() {
            true => node.stream(
                self.mft,
                kind::INDEX_ALLOCATION,
                &crate::directory::dir::I30,
            )?,
            false if form.kind() != FileKind::File => None,
            false => node.content(self.mft)?,
        };
        Ok(stream.map_or((0, 0), |stream| (stream.size, stream.taken)))
    }

    /// Counts names. The short names of DOS do not count.
    fn links(&self, node: &Node) -> Result<u32> {
        let told = u32::from(node.record.head.links.get());
        if told <= 1 || node.record.is_dir() {
            return Ok(1);
        }
        let names = node.names(self.mft)?;
        let dos = names.iter().filter(|name| name.is_dos()).count();
        Ok(told.saturating_sub(u32::try_from(dos).unwrap_or(0)).max(1))
    }
}

fn mode(form: &Form, wsl: &Wsl, owned: &Owned, owner: &Owner) -> u32 {
    if matches!(form, Form::Link(_)) {
        return 0o777;
    }
    let default = 0o777 & !owner.umask;
    wsl.mode.or(owned.mode).unwrap_or(default) & 0o7777
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_1601() {
        assert_eq!(time(0), Time::from_secs(-EPOCH));
        assert_eq!(time(116_444_736_000_000_001), Time::new(0, 100));
        assert_eq!(time(116_444_735_999_999_999), Time::new(-1, 999_999_900));
        assert_eq!(time(u64::MAX), Time::new(-EPOCH - 1, 999_999_900));
    }
}
