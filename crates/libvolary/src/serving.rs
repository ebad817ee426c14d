//! Servers on a volume.
#![expect(
    unsafe_code,
    reason = "names that C calls, with pointers that it gives"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header says it for all: pointers are to memory that is the caller's"
)]

use crate::abi::{VolaryServer, VolaryVol};
use crate::fault::{Fault, Outcome, done};
use crate::raw::{Place, bytes_of, put_text, text_of};
use crate::table::{SERVERS, VOLUMES};
use std::ffi::{OsStr, c_char, c_int};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary::{Serve, Served};

/// Serves a volume by NFS, to this host alone, as the export `/NAME`. The address is like
/// `127.0.0.1:2049`; with port 0, any free port is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_serve_nfs(
    vol: VolaryVol,
    address: *const c_char,
    name: *const c_char,
    read_only: c_int,
    server: *mut VolaryServer,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, address, name) =
            unsafe { (Place::at(server)?, text_of(address)?, text_of(name)?) };
        let served = how(vol, Some(name), read_only)?.nfs(parsed(address)?)?;
        place.set(SERVERS.add(Arc::new(served)));
        Ok(())
    })
}

/// Serves a volume by SMB, as a share, to one user with a password. Encrypted, unless the address
/// is of this host alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_serve_smb(
    vol: VolaryVol,
    address: *const c_char,
    name: *const c_char,
    read_only: c_int,
    user: *const c_char,
    password: *const c_char,
    server: *mut VolaryServer,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, address, name) =
            unsafe { (Place::at(server)?, text_of(address)?, text_of(name)?) };
        // SAFETY: the caller upholds this function's contract.
        let (user, password) = unsafe { (text_of(user)?, text_of(password)?) };
        let served = how(vol, Some(name), read_only)?.smb(parsed(address)?, user, password)?;
        place.set(SERVERS.add(Arc::new(served)));
        Ok(())
    })
}

/// Mounts a volume on a directory of this host, by FUSE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_mount(
    vol: VolaryVol,
    dir: *const c_char,
    read_only: c_int,
    server: *mut VolaryServer,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, dir) = unsafe { (Place::at(server)?, bytes_of(dir)?) };
        let served = how(vol, None, read_only)?.mount(OsStr::from_bytes(dir))?;
        place.set(SERVERS.add(Arc::new(served)));
        Ok(())
    })
}

/// Writes a server's address, with a zero byte, into a buffer of `room` bytes; 64 are enough. For a
/// mount, the address is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_server_address(
    server: VolaryServer,
    address: *mut c_char,
    room: usize,
) -> c_int {
    done(|| {
        let served = SERVERS.get(server)?;
        let text = served
            .address()
            .map_or_else(String::new, |at| at.to_string());
        // SAFETY: the caller upholds this function's contract.
        unsafe { put_text(text.as_bytes(), address, room) }
    })
}

/// Ends a server, or removes a mount. The volume stays open.
#[unsafe(no_mangle)]
pub extern "C" fn volary_server_stop(server: VolaryServer) -> c_int {
    done(|| match Arc::into_inner(SERVERS.take(server)?) {
        Some(served) => Ok(Served::stop(served)?),
        // A thread that is asking for its address ends it afterwards.
        None => Ok(()),
    })
}

fn how(vol: VolaryVol, name: Option<&str>, read_only: c_int) -> Outcome<Serve> {
    let mut serve = VOLUMES.get(vol)?.serve();
    if let Some(name) = name {
        serve = serve.name(name);
    }
    Ok(match read_only {
        0 => serve,
        _ => serve.read_only(),
    })
}

fn parsed(address: &str) -> Outcome<SocketAddr> {
    let parsed = address.parse();
    parsed.map_err(|_| {
        Fault::invalid(format!(
            "'{}' is no address",
            volary::escape(address.as_bytes())
        ))
    })
}
