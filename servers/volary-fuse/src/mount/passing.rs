//! Passes descriptors over a socket, each with a byte.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Sends a byte, with a descriptor if there is one.
///
/// # Errors
/// Those of the socket.
pub(crate) fn send_byte(
    socket: BorrowedFd<'_>,
    byte: u8,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&fds));
    }
    sendmsg(
        socket,
        &[IoSlice::new(&[byte])],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives a byte, and the descriptor that came with it, if any.
///
/// # Errors
/// Those of the socket; `UnexpectedEof` at its end.
pub(crate) fn receive_byte(socket: BorrowedFd<'_>) -> io::Result<(u8, Option<OwnedFd>)> {
    let mut byte = [0];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let got = loop {
        let mut place = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut place, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            got => break got?,
        }
    };
    let fd = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let [byte] = byte;
    match got.bytes {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((byte, fd)),
    }
}
