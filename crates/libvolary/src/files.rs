//! Open files, for reading and writing in pieces.
#![expect(
    unsafe_code,
    reason = "names that C calls, with pointers that it gives"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header says it for all: pointers are to memory that is the caller's"
)]

use crate::abi::{VolaryFile, VolaryHow, VolaryStat, VolaryVol};
use crate::fault::{Fault, Outcome, answer, done};
use crate::raw::{Place, bytes_of, input, output};
use crate::table::{FILES, VOLUMES};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use volary::FileHow;

/// One of `VolaryHow`. It is a plain number, so that any other value can be refused.
pub type VolaryHowNumber = c_int;

fn file_how(how: c_int) -> Outcome<FileHow> {
    const HOWS: [(VolaryHow, FileHow); 6] = [
        (VolaryHow::Read, FileHow::READ),
        (VolaryHow::Write, FileHow::WRITE),
        (VolaryHow::New, FileHow::NEW),
        (VolaryHow::Update, FileHow::UPDATE),
        (VolaryHow::UpdateOrNew, FileHow::UPDATE_OR_NEW),
        (VolaryHow::Append, FileHow::APPEND),
    ];
    let found = HOWS.iter().find(|(code, _)| *code as c_int == how);
    let unknown = || Fault::invalid(format!("{how} is no way to open a file"));
    found.map(|(_, how)| *how).ok_or_else(unknown)
}

/// Opens a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_file_open(
    vol: VolaryVol,
    path: *const c_char,
    how: VolaryHowNumber,
    file: *mut VolaryFile,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, path) = unsafe { (Place::at(file)?, bytes_of(path)?) };
        let opened = VOLUMES.get(vol)?.open_file(path, file_how(how)?)?;
        place.set(FILES.add(Arc::new(opened)));
        Ok(())
    })
}

/// Reads at byte `offset`. Returns the number of bytes read: less than `len` only at the end of the
/// file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_file_read(
    file: VolaryFile,
    offset: u64,
    bytes: *mut c_void,
    len: usize,
) -> i64 {
    answer(|| {
        let file = FILES.get(file)?;
        // SAFETY: the caller upholds this function's contract.
        let room = unsafe { output(bytes, len) }?;
        let read = file.read_at(offset, room)?;
        Ok(i64::try_from(read).unwrap_or(i64::MAX))
    })
}

/// Writes all `len` bytes at byte `offset`, or at the end if the file was opened to append.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_file_write(
    file: VolaryFile,
    offset: u64,
    bytes: *const c_void,
    len: usize,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let bytes = unsafe { input(bytes, len) }?;
        Ok(FILES.get(file)?.write_at(offset, bytes)?)
    })
}

/// Truncates a file to `len` bytes, or extends it to them with zeros.
#[unsafe(no_mangle)]
pub extern "C" fn volary_file_set_len(file: VolaryFile, len: u64) -> c_int {
    done(|| Ok(FILES.get(file)?.set_len(len)?))
}

/// Returns the attributes of an open file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_file_stat(file: VolaryFile, stat: *mut VolaryStat) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let place = unsafe { Place::at(stat) }?;
        place.set((&FILES.get(file)?.metadata()?).into());
        Ok(())
    })
}

/// Makes what was written to a file durable.
#[unsafe(no_mangle)]
pub extern "C" fn volary_file_sync(file: VolaryFile) -> c_int {
    done(|| Ok(FILES.get(file)?.sync()?))
}

/// Closes a file, even if this returns an error, which is one of earlier writes. If another thread
/// is using the file, it is closed after that.
#[unsafe(no_mangle)]
pub extern "C" fn volary_file_close(file: VolaryFile) -> c_int {
    done(|| match Arc::into_inner(FILES.take(file)?) {
        Some(file) => Ok(file.close()?),
        None => Ok(()),
    })
}
