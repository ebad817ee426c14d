//! What is not written: nothing but for a change.

use crate::volumes::{attach, attach_read_only, shape};
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{Create, Kind, Mode, Name, SetAttr};
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;

#[test]
fn attaching_looking_and_detaching_write_nothing() {
    let recorder = Arc::new(Recorder::new(shape(16 * MIB).device()));
    let fs = attach(recorder.clone(), "");
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), Mode::Read).unwrap();
        fs.close(cx, open).unwrap();
        fs.sync(cx).unwrap();
        fs.detach(cx).unwrap();
    });
    let counts = recorder.counts();
    assert_eq!((counts.writes, counts.flushes), (0, 0));
}

#[test]
fn a_volume_that_was_not_left_is_recovered_for_reading_without_a_write() {
    let dev = shape(16 * MIB).device();
    let fs = attach(dev.clone(), "");
    let name = Name::new(b"f").unwrap();
    as_root(|cx| {
        let set = SetAttr::default();
        let (_, open) = fs.create(cx, fs.root(), name, Create::New, &set).unwrap();
        fs.write(cx, open, Some(0), b"content").unwrap();
        fs.fsync(cx, open, false).unwrap();
    });
    // Dropped without a detach: as after a power cut.
    drop(fs);
    let recorder = Arc::new(Recorder::new(dev));
    let fs = attach_read_only(recorder.clone(), "").unwrap();
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name).unwrap().node;
        let open = fs.open(cx, node, Mode::Read).unwrap();
        let mut buf = [0; 16];
        let n = fs.read(cx, open, 0, &mut buf).unwrap();
        assert_eq!(&buf[..n], b"content");
        let refused = fs.unlink(cx, fs.root(), name).unwrap_err();
        assert_eq!(refused, Kind::ReadOnly);
        fs.detach(cx).unwrap();
    });
    assert_eq!(recorder.counts().writes, 0);
}
