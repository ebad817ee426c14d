//! Attributes as in NFS (RFC 1813, sections 2.5 and 2.6).

use crate::kept::order::Wcc;
use volary_core::{Attr, Caps, FileKind, SetAttr, SetTime, Time};
use volary_rpc::{Decoded, Garbage, Input, Output};

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;
/// The length of `fattr3`, in bytes.
pub(crate) const FATTR: usize = 84;

/// Returns the `ftype3` of a kind.
pub(crate) const fn number_of(kind: FileKind) -> u32 {
    match kind {
        FileKind::File => 1,
        FileKind::Dir => 2,
        FileKind::BlockDevice => 3,
        FileKind::CharDevice => 4,
        FileKind::Symlink => 5,
        FileKind::Socket => 6,
        FileKind::Fifo => 7,
    }
}

/// Returns the kind of a `ftype3`.
pub(crate) const fn kind_of(number: u32) -> Option<FileKind> {
    Some(match number {
        1 => FileKind::File,
        2 => FileKind::Dir,
        3 => FileKind::BlockDevice,
        4 => FileKind::CharDevice,
        5 => FileKind::Symlink,
        6 => FileKind::Socket,
        7 => FileKind::Fifo,
        _ => return None,
    })
}

/// Writes an `nfstime3`: times before 1970 become 1970, and those after 2106 the last one in 2106.
pub(crate) fn write_time(out: &mut Output, time: Time) {
    match u32::try_from(time.secs) {
        Ok(secs) => {
            out.u32(secs);
            out.u32(time.nanos);
        }
        Err(_) => {
            out.u32(if time.secs < 0 { 0 } else { u32::MAX });
            out.u32(0);
        }
    }
}

pub(crate) fn read_time(input: &mut Input<'_>) -> Decoded<Time> {
    let (secs, nanos) = (input.u32()?, input.u32()?);
    if nanos >= 1_000_000_000 {
        return Err(Garbage);
    }
    Ok(Time::new(secs.into(), nanos))
}

/// How the attributes of an export's nodes are converted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) fsid: u64,
    /// `Some` if the volume's time step is a second or more: the number from which
    /// [`ctime`](Self::ctime) counts changes, different in each run.
    coarse: Option<u64>,
}

impl Shown {
    pub(crate) fn new(fsid: u64, caps: &Caps, instance: u64) -> Self {
        let coarse = caps.time_step >= NANOS;
        Self {
            fsid,
            coarse: coarse.then_some(instance),
        }
    }

    /// Returns the `ctime`, by which clients see that a node has changed. If changes may come
    /// faster than the volume's clock ticks, the part below a second is made from the count of
    /// changes, so that each is seen. The count starts from another number in each run.
    pub(crate) fn ctime(self, attr: &Attr) -> Time {
        match self.coarse {
            Some(instance) => {
                let nanos = (instance % NANOS + attr.change % NANOS) % NANOS;
                Time::new(attr.ctime.secs, nanos as u32)
            }
            None => attr.ctime,
        }
    }
}

/// Writes a `fattr3`.
pub(crate) fn write_attr(out: &mut Output, shown: Shown, attr: &Attr) {
    out.u32(number_of(attr.kind));
    out.u32(attr.mode & 0o7777);
    for n in [attr.nlink, attr.uid, attr.gid] {
        out.u32(n);
    }
    out.u64(attr.size);
    out.u64(attr.allocated);
    out.u64(attr.rdev);
    out.u64(shown.fsid);
    out.u64(attr.node.ino.get());
    for time in [attr.atime, attr.mtime, shown.ctime(attr)] {
        write_time(out, time);
    }
}

/// Writes a `post_op_attr`.
pub(crate) fn write_post(out: &mut Output, shown: Shown, attr: Option<&Attr>) {
    out.bool(attr.is_some());
    if let Some(attr) = attr {
        write_attr(out, shown, attr);
    }
}

/// Writes a `wcc_data`.
pub(crate) fn write_wcc(out: &mut Output, shown: Shown, wcc: &Wcc) {
    out.bool(wcc.before.is_some());
    if let Some(before) = &wcc.before {
        out.u64(before.size);
        write_time(out, before.mtime);
        write_time(out, shown.ctime(before));
    }
    write_post(out, shown, wcc.after.as_ref());
}

/// Reads a `sattr3`.
pub(crate) fn read_set(input: &mut Input<'_>) -> Decoded<SetAttr> {
    fn some<'a, T>(
        input: &mut Input<'a>,
        read: impl FnOnce(&mut Input<'a>) -> Decoded<T>,
    ) -> Decoded<Option<T>> {
        if input.bool()? {
            read(input).map(Some)
        } else {
            Ok(None)
        }
    }
    Ok(SetAttr {
        mode: some(input, Input::u32)?.map(|mode| mode & 0o7777),
        uid: some(input, Input::u32)?,
        gid: some(input, Input::u32)?,
        size: some(input, Input::u64)?,
        atime: read_set_time(input)?,
        mtime: read_set_time(input)?,
        ..SetAttr::default()
    })
}

fn read_set_time(input: &mut Input<'_>) -> Decoded<Option<SetTime>> {
    match input.u32()? {
        0 => Ok(None),
        1 => Ok(Some(SetTime::Now)),
        2 => read_time(input).map(|time| Some(SetTime::To(time))),
        _ => Err(Garbage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_core::NodeId;

    #[test]
    fn kinds_are_numbered_both_ways() {
        for number in 1..=7 {
            assert_eq!(kind_of(number).map(number_of), Some(number));
        }
        assert_eq!((kind_of(0), kind_of(8)), (None, None));
    }

    #[test]
    fn times_that_do_not_fit_are_the_nearest_that_do() {
        let wire = |time| {
            let mut out = Output::new();
            write_time(&mut out, time);
            let mut input = Input::new(out.bytes());
            (input.u32().unwrap(), input.u32().unwrap())
        };
        assert_eq!(wire(Time::new(5, 6)), (5, 6));
        assert_eq!(wire(Time::new(-5, 6)), (0, 0));
        assert_eq!(wire(Time::new(1 << 40, 6)), (u32::MAX, 0));
        assert_eq!(read_time(&mut Input::new(&[0xff; 8])), Err(Garbage));
    }

    #[test]
    fn attributes_take_the_room_that_replies_leave_for_them() {
        let mut out = Output::new();
        write_attr(&mut out, Shown::default(), &attr(0));
        assert_eq!(out.len(), FATTR);
    }

    #[test]
    fn every_change_is_seen_however_coarse_the_clock() {
        let caps = |time_step| Caps {
            bits: 0,
            name_max: 255,
            size_max: 0,
            time_step,
        };
        let coarse = Shown::new(0, &caps(2 * NANOS), 7);
        assert_ne!(coarse.ctime(&attr(1)), coarse.ctime(&attr(2)));
        let later = Shown::new(0, &caps(2 * NANOS), u64::MAX);
        assert_ne!(coarse.ctime(&attr(1)), later.ctime(&attr(1)));
        let fine = Shown::new(0, &caps(1), 7);
        assert_eq!(fine.ctime(&attr(1)), Time::EPOCH);
    }

    fn attr(change: u64) -> Attr {
        Attr {
            node: NodeId::new(1, 0).unwrap(),
            kind: FileKind::File,
            mode: 0o644,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            allocated: 0,
            io_size: 4096,
            atime: Time::EPOCH,
            mtime: Time::EPOCH,
            ctime: Time::EPOCH,
            btime: None,
            change,
            dos: None,
        }
    }

    #[test]
    fn changes_are_read_one_by_one() {
        let mut out = Output::new();
        out.bool(true);
        out.u32(0o100_755);
        out.bool(false);
        out.bool(true);
        out.u32(9);
        out.bool(true);
        out.u64(1 << 33);
        out.u32(1);
        out.u32(2);
        out.u32(10);
        out.u32(11);
        let set = read_set(&mut Input::new(out.bytes())).unwrap();
        let expected = SetAttr {
            mode: Some(0o755),
            gid: Some(9),
            size: Some(1 << 33),
            atime: Some(SetTime::Now),
            mtime: Some(SetTime::To(Time::new(10, 11))),
            ..SetAttr::default()
        };
        assert_eq!(set, expected);
    }
}
