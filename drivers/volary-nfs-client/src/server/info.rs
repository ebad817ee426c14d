//! The server's capabilities, from FSINFO and PATHCONF.

use crate::fail;
use crate::server::peer::{Call, Peer};
use crate::wire::proto::{Fattr, Fh, error_of, procedure, status, time};
use crate::wire::record::RECORD_MAX;
use volary_core::{Caps, Cred, Result};
use volary_rpc::numbers::NFS;
use volary_rpc::{Decoded, Input, Output};

/// The most that one call reads or writes, in bytes.
const IO_MAX: usize = 1 << 20;
/// The most bytes of a listing that one call requests.
const LIST_MAX: u32 = 64 << 10;
/// The longest name, if the server does not tell.
const NAME_MAX: u16 = 255;

/// The results of FSINFO and PATHCONF, within our own limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    /// The most bytes that one call reads, writes and lists.
    pub(crate) read_max: usize,
    pub(crate) write_max: usize,
    pub(crate) list_max: u32,
    pub(crate) caps: Caps,
}

/// The root of an export that is being attached.
pub(crate) struct Root<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) cred: &'a Cred,
    pub(crate) fh: &'a Fh,
}

impl Root<'_> {
    /// Calls GETATTR.
    pub(crate) fn attr(&self) -> Result<Fattr> {
        self.call(procedure::GETATTR, Fattr::read)
    }

    /// Calls FSINFO and PATHCONF.
    pub(crate) fn info(&self) -> Result<Info> {
        let mut info = self.call(procedure::FSINFO, read_info)?;
        // A server may lack PATHCONF.
        let path = self.call(procedure::PATHCONF, read_path);
        path.unwrap_or_default().add_to(&mut info.caps);
        Ok(info)
    }

    fn call<T>(
        &self,
        procedure: u32,
        read: impl FnOnce(&mut Input<'_>) -> Decoded<T>,
    ) -> Result<T> {
        let call = Call {
            cred: Some(self.cred),
            ..Call::plain(NFS, procedure)
        };
        let done = self
            .peer
            .call(&call, |out: &mut Output| self.fh.write(out))?;
        let mut input = done.results();
        match input.u32().map_err(fail::garbage)? {
            status::OK => read(&mut input).map_err(fail::garbage),
            status => Err(error_of(status)),
        }
    }
}

/// Decodes the results of FSINFO (RFC 1813, section 3.3.19).
fn read_info(input: &mut Input<'_>) -> Decoded<Info> {
    const LINK: u32 = 0x01;
    const SYMLINK: u32 = 0x02;
    const SMALLEST: usize = 512;
    Fattr::read_maybe(input)?;
    let [read_max, _, _, write_max, _, _, list] = numbers(input)?;
    let size_max = input.u64()?;
    let step = time(input)?;
    let properties = input.u32()?;
    let bound = |said: u32| {
        let said = usize::try_from(said).unwrap_or(usize::MAX);
        // Whole pages, so that neither side must split or join them.
        let said = said.clamp(SMALLEST, IO_MAX.min(RECORD_MAX));
        if said > 4096 { said & !4095 } else { said }
    };
    let mut bits = Caps::MODES
        | Caps::HOLES
        | Caps::CASE_SENSITIVE
        | Caps::CASE_KEEPING
        | Caps::DEVICES
        | Caps::ANY_NAME
        | Caps::CHECKS_ACCESS;
    for (property, cap) in [(LINK, Caps::HARD_LINKS), (SYMLINK, Caps::SYMLINKS)] {
        if properties & property != 0 {
            bits |= cap;
        }
    }
    let secs = u64::try_from(step.secs).unwrap_or_default();
    Ok(Info {
        read_max: bound(read_max),
        write_max: bound(write_max),
        list_max: list.clamp(8192, LIST_MAX),
        caps: Caps {
            bits,
            name_max: NAME_MAX,
            // No system has larger files.
            size_max: size_max.clamp(1, i64::MAX as u64),
            time_step: secs
                .saturating_mul(1_000_000_000)
                .saturating_add(step.nanos.into())
                .max(1),
        },
    })
}

fn numbers<const N: usize>(input: &mut Input<'_>) -> Decoded<[u32; N]> {
    let mut all = [0; N];
    for n in &mut all {
        *n = input.u32()?;
    }
    Ok(all)
}

/// The results of PATHCONF (section 3.3.20).
struct Path {
    name_max: u32,
    folds_case: bool,
    keeps_case: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            name_max: NAME_MAX.into(),
            folds_case: false,
            keeps_case: true,
        }
    }
}

fn read_path(input: &mut Input<'_>) -> Decoded<Path> {
    Fattr::read_maybe(input)?;
    input.u32()?;
    let name_max = input.u32()?;
    input.bool()?;
    input.bool()?;
    Ok(Path {
        name_max,
        folds_case: input.bool()?,
        keeps_case: input.bool()?,
    })
}

impl Path {
    fn add_to(&self, caps: &mut Caps) {
        if self.folds_case {
            *caps = caps.without(Caps::CASE_SENSITIVE);
        }
        if !self.keeps_case {
            *caps = caps.without(Caps::CASE_KEEPING);
        }
        let name_max = u16::try_from(self.name_max).unwrap_or(NAME_MAX);
        caps.name_max = if name_max == 0 {
            NAME_MAX
        } else {
            name_max.min(NAME_MAX * 4)
        };
    }
}
