//! Versions: what is kept when a file is emptied or replaced, by its own name.

use crate::volumes::{attach, clean, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Cookie, Create, DirBuf, Fs, Kind, Mode, Name, NodeId, RenameFlags, Result, SetAttr,
};
use volary_testkit::volumes::{Shape, as_root};

const SHAPE: Shape = shape(2 << 20).made("page=512,log=186k");

/// Calls in the root directory, in short.
struct Calls(Fs);

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

impl Calls {
    fn node(&self, path: &str) -> Result<NodeId> {
        as_root(|cx| Ok(self.0.lookup(cx, self.0.root(), name(path))?.node))
    }

    fn write(&self, path: &str, text: &str) {
        let opened = as_root(|cx| {
            let set = SetAttr::default();
            let (_, open) = self
                .0
                .create(cx, self.0.root(), name(path), Create::Truncate, &set)?;
            self.0.write(cx, open, Some(0), text.as_bytes())?;
            self.0.close(cx, open)
        });
        opened.unwrap();
    }

    fn text(&self, path: &str) -> Result<String> {
        let node = self.node(path)?;
        self.text_of(node)
    }

    fn text_of(&self, node: NodeId) -> Result<String> {
        as_root(|cx| {
            let open = self.0.open(cx, node, Mode::Read)?;
            let mut buf = vec![0; 4000];
            let len = self.0.read(cx, open, 0, &mut buf)?;
            self.0.close(cx, open)?;
            Ok(String::from_utf8_lossy(&buf[..len]).into_owned())
        })
    }

    fn keep(&self, path: &str, keep: &str) -> Result<()> {
        let node = self.node(path)?;
        as_root(|cx| {
            self.0
                .setxattr(cx, node, b"user.cedar.keep", keep.as_bytes())
        })
    }

    fn versions(&self, path: &str) -> String {
        let node = self.node(path).unwrap();
        let value = as_root(|cx| self.0.getxattr(cx, node, b"user.cedar.versions"));
        String::from_utf8(value.unwrap()).unwrap()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let root = self.0.root();
        as_root(|cx| {
            self.0
                .rename(cx, root, name(from), root, name(to), RenameFlags::REPLACE)
        })
    }

    fn unlink(&self, path: &str) -> Result<()> {
        as_root(|cx| self.0.unlink(cx, self.0.root(), name(path)))
    }

    fn names(&self) -> Vec<String> {
        as_root(|cx| {
            let open = self.0.open(cx, self.0.root(), Mode::Read).unwrap();
            let mut buf = DirBuf::new(64, 4096, false);
            self.0.readdir(cx, open, Cookie::START, &mut buf).unwrap();
            self.0.close(cx, open).unwrap();
            let names = buf
                .iter()
                .map(|e| String::from_utf8_lossy(e.name).into_owned());
            names.collect()
        })
    }

    fn free(&self) -> u64 {
        as_root(|cx| {
            self.0.sync(cx).unwrap();
            self.0.statfs(cx).unwrap().free
        })
    }
}

/// Returns a volume with `a`, which keeps three versions and has had five.
fn with_versions() -> (Calls, Arc<MemDevice>) {
    let device = SHAPE.device();
    let calls = Calls(attach(device.clone(), SHAPE.attach));
    calls.write("a", "first");
    calls.keep("a", "3").unwrap();
    for text in ["second", "third", "fourth", "fifth"] {
        calls.write("a", text);
    }
    (calls, device)
}

fn must_be_clean(calls: &Calls, device: &Arc<MemDevice>) {
    as_root(|cx| calls.0.detach(cx)).unwrap();
    clean(device.clone()).unwrap();
}

#[test]
fn what_was_emptied_is_kept_by_number() {
    let (calls, device) = with_versions();
    assert_eq!(calls.versions("a"), "5 4 3");
    for (path, text) in [
        ("a", "fifth"),
        ("a!5", "fifth"),
        ("a!4", "fourth"),
        ("a!3", "third"),
    ] {
        assert_eq!(calls.text(path).unwrap(), text);
    }
    for gone in ["a!2", "a!1", "a!6", "a!03", "b!1"] {
        assert!(calls.text(gone).unwrap_err() == Kind::NotFound, "{gone}");
    }
    assert_eq!(calls.names(), ["a"]);
    must_be_clean(&calls, &device);
    let calls = Calls(attach(device.clone(), ""));
    assert_eq!(calls.versions("a"), "5 4 3");
    assert_eq!(calls.text("a!3").unwrap(), "third");
}

#[test]
fn a_file_that_is_replaced_is_a_version_of_its_heir() {
    let (calls, device) = with_versions();
    calls.write("new", "sixth");
    calls.rename("new", "a").unwrap();
    assert_eq!(calls.versions("a"), "6 5 4");
    assert_eq!(calls.text("a").unwrap(), "sixth");
    assert_eq!(calls.text("a!5").unwrap(), "fifth");
    // Versions go with the file, not with the name.
    calls.rename("a", "b").unwrap();
    assert_eq!(calls.text("b!4").unwrap(), "fourth");
    assert!(calls.text("a!4").unwrap_err() == Kind::NotFound);
    // An older one comes back as the newest.
    calls.rename("b!4", "b").unwrap();
    assert_eq!(calls.versions("b"), "7 6 5");
    assert_eq!(calls.text("b").unwrap(), "fourth");
    calls.rename("b!5", "c").unwrap();
    assert_eq!(
        (calls.versions("b"), calls.text("c").unwrap()),
        ("7 6".into(), "fifth".into())
    );
    assert_eq!(calls.names(), ["b", "c"]);
    must_be_clean(&calls, &device);
}

#[test]
fn an_older_version_does_not_change_and_goes_alone_or_with_the_file() {
    let (calls, device) = with_versions();
    let root = calls.0.root();
    let old = calls.node("a!4").unwrap();
    let refused = |e: volary_core::Error| assert!(e == Kind::NotPermitted, "{e}");
    as_root(|cx| {
        refused(calls.0.open(cx, old, Mode::Write).unwrap_err());
        refused(calls.0.setattr(cx, old, &SetAttr::size(1)).unwrap_err());
        refused(calls.0.link(cx, old, root, name("x")).unwrap_err());
        let made = calls.0.mkdir(cx, root, name("a!3"), &SetAttr::default());
        assert!(made.unwrap_err() == Kind::Exists);
    });
    calls.write("x", "x");
    refused(calls.rename("x", "a!4").unwrap_err());
    // One that is open stays until it is closed.
    let open = as_root(|cx| calls.0.open(cx, calls.node("a!3").unwrap(), Mode::Read)).unwrap();
    assert!(calls.unlink("a!5").unwrap_err() == Kind::NotPermitted);
    assert!(calls.rename("a!5", "b").unwrap_err() == Kind::NotPermitted);
    assert_eq!(calls.text("a!5").unwrap(), "fifth");
    calls.unlink("a!3").unwrap();
    assert_eq!(calls.versions("a"), "5 4");
    let mut buf = [0; 5];
    as_root(|cx| calls.0.read(cx, open, 0, &mut buf)).unwrap();
    assert_eq!(&buf, b"third");
    as_root(|cx| calls.0.close(cx, open)).unwrap();
    calls.unlink("x").unwrap();
    let held = as_root(|cx| calls.0.open(cx, calls.node("a").unwrap(), Mode::Read)).unwrap();
    calls.unlink("a").unwrap();
    assert!(calls.text("a!4").unwrap_err() == Kind::NotFound);
    as_root(|cx| calls.0.close(cx, held)).unwrap();
    assert!(calls.text_of(old).unwrap_err() == Kind::Stale);
    let empty = Calls(attach(SHAPE.device(), "")).free();
    assert_eq!(calls.free(), empty);
    must_be_clean(&calls, &device);
}

#[test]
fn keep_is_lowered_inherited_and_checked() {
    let (calls, device) = with_versions();
    calls.keep("a", "2").unwrap();
    assert_eq!(calls.versions("a"), "5 4");
    let node = calls.node("a").unwrap();
    as_root(|cx| {
        assert_eq!(
            calls.0.listxattr(cx, node).unwrap(),
            [b"user.cedar.keep".to_vec()]
        );
        assert_eq!(
            calls.0.getxattr(cx, node, b"user.cedar.keep").unwrap(),
            b"2"
        );
        let set = calls.0.setxattr(cx, node, b"user.cedar.versions", b"9");
        assert!(set.unwrap_err() == Kind::NotPermitted);
    });
    for wrong in ["0", "1001", "-1", "many", ""] {
        assert!(
            calls.keep("a", wrong).unwrap_err() == Kind::Invalid,
            "{wrong}"
        );
    }
    as_root(|cx| calls.0.removexattr(cx, node, b"user.cedar.keep")).unwrap();
    assert_eq!(calls.versions("a"), "5");
    calls.write("a", "sixth");
    assert_eq!(calls.versions("a"), "5");
    // A directory's is that of what is made in it from then on.
    let root = calls.0.root();
    as_root(|cx| calls.0.setxattr(cx, root, b"user.cedar.keep", b"4")).unwrap();
    for text in ["one", "two"] {
        calls.write("b", text);
    }
    assert_eq!(calls.versions("b"), "2 1");
    must_be_clean(&calls, &device);
}
