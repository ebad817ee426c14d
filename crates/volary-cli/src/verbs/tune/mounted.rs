//! Changes of a volume that is mounted: by `ioctl` of its directory.

use crate::exit::{Done, Exit, Fail};
use crate::registry::registry;
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::fs::File;
use std::path::Path;
use volary::{Fact, escape};

/// Bytes of the text that the volume takes.
const TEXT: usize = 256;

/// `_IOW('V', 2, char[256])`: options of tune, with zeros behind.
const TUNE: rustix::ioctl::Opcode = opcode::write::<[u8; TEXT]>(b'V', 2);

/// Changes parameters of the volume that is mounted on a directory; says what was done.
pub(super) fn tune(dir: &Path, options: &[String]) -> Done<Vec<Fact>> {
    let shown = escape(dir.as_os_str().as_encoded_bytes());
    let line = options.join(",");
    let mut text = [0; TEXT];
    // The last zero stays.
    let Some(room) = text
        .get_mut(..line.len())
        .filter(|room| room.len() < TEXT && !line.contains('\0'))
    else {
        return Err(Fail::usage("too many options at once"));
    };
    room.copy_from_slice(line.as_bytes());
    let open = File::open(dir).map_err(|e| Fail::host(shown, e))?;
    #[expect(unsafe_code, reason = "the one way to tell a mounted volume")]
    // SAFETY: the code says that the kernel reads as many bytes as there are, and writes none.
    let told = unsafe { ioctl(&open, Setter::<TUNE, _>::new(text)) };
    told.map_err(|e| failed(&shown, e))?;
    let given = line.split(',').filter(|option| !option.is_empty());
    Ok(given.filter_map(fact).collect())
}

/// Returns an option that was taken, as a fact.
fn fact(option: &str) -> Option<Fact> {
    let (name, value) = option.split_once('=')?;
    let spec = registry()
        .formats()
        .iter()
        .flat_map(|format| format.tune_options())
        .find(|spec| spec.name == name)?;
    Some(match value.parse() {
        Ok(number) => Fact::number(spec.name, number, ""),
        Err(_) => Fact::word(spec.name, value),
    })
}

fn failed(shown: &impl std::fmt::Display, e: Errno) -> Fail {
    match e {
        Errno::NOTTY => Fail::new(
            Exit::NotOpened,
            format!("{shown}: is a directory; only FFS volumes are changed while mounted"),
        ),
        Errno::INVAL => Fail::usage(format!(
            "{shown}: the volume does not take these options; see volary tune --help"
        )),
        e => Fail::host(shown, e),
    }
}
