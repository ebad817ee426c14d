//! Files that `create` opens.

use crate::laid::name;
use crate::volumes::{attach, clean, shape};
use volary_core::{Create, Kind, SetAttr};
use volary_testkit::volumes::as_root;

#[test]
fn opening_by_create_what_is_there_changes_nothing() {
    as_root(|cx| {
        let fs = attach(shape("ffs2", 16 << 20).device(), "");
        let create = |how| fs.create(cx, fs.root(), name("f"), how, &SetAttr::default());
        let (made, open) = create(Create::New).expect("create");
        fs.close(cx, open).expect("close");
        fs.sync(cx).expect("sync");
        let before = fs.getattr(cx, made.node).expect("getattr");
        let (found, open) = create(Create::Open).expect("open");
        assert_eq!(found.attr, before);
        fs.close(cx, open).expect("close");
        assert_eq!(fs.getattr(cx, made.node).expect("getattr"), before);
    });
}

#[test]
fn what_create_opens_outlives_its_name_and_commits() {
    for options in ["", "sync"] {
        as_root(|cx| {
            let dev = shape("ffs1", 16 << 20).device();
            let fs = attach(dev.clone(), options);
            let (file, open) = fs
                .create(cx, fs.root(), name("f"), Create::New, &SetAttr::default())
                .expect("create");
            fs.write(cx, open, Some(0), b"content").expect("write");
            fs.unlink(cx, fs.root(), name("f")).expect("unlink");
            fs.sync(cx).expect("sync");
            let mut bytes = [0; 7];
            assert_eq!(fs.read(cx, open, 0, &mut bytes).expect("read"), 7);
            assert_eq!(&bytes, b"content");
            fs.close(cx, open).expect("close");
            assert_eq!(fs.getattr(cx, file.node).unwrap_err(), Kind::Stale);
            fs.detach(cx).expect("detach");
            clean(dev).expect("clean");
        });
    }
}
