//! Handing a descriptor to another process over a socket, instead of letting it inherit one.

use rustix::{
    io::{IoSlice, IoSliceMut},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};
use std::{
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

/// Sends `descriptor` to whoever holds the other end.
pub(in super::super) fn pass(socket: &UnixStream, descriptor: &impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    // An ancillary message needs a byte to travel with.
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(b".")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Takes the descriptor that [`pass`] sent.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags(),
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(descriptor) = descriptors.next()
        {
            return Ok(descriptor);
        }
    }
    Err(io::Error::other("this command is for the gateway itself"))
}

#[cfg(target_os = "linux")]
fn flags() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn flags() -> RecvFlags {
    RecvFlags::empty()
}
