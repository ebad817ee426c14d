//! What a call costs in this process and through the border.

#[path = "../tests/it/built.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod built;

use std::time::{Duration, Instant};
use volary_core::{Cancel, Create, Cred, Ctx, Fs, Name, SetAttr};

const CALLS: u32 = 5000;
const LEN: usize = 128 << 10;

fn each(mut call: impl FnMut()) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "measures")]
    let begin = Instant::now();
    (0..CALLS).for_each(|_| call());
    begin.elapsed() / CALLS
}

fn measure(what: &str, fs: &Fs) {
    let cx = &Ctx {
        cred: &Cred::root(),
        now: built::now(),
        cancel: &Cancel::new(),
    };
    let name = Name::new(b"file").unwrap();
    let set = SetAttr::default();
    let made = fs.create(cx, fs.root(), name, Create::New, &set);
    let (entry, open) = made.unwrap();
    let mut buf = vec![7; LEN];
    fs.write(cx, open, Some(0), &buf).unwrap();
    let getattr = each(|| assert_eq!(fs.getattr(cx, entry.node).unwrap().size, LEN as u64));
    let read = each(|| assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap(), LEN));
    let speed = LEN as f64 / read.as_secs_f64() / 1e6;
    println!("{what}: getattr {getattr:?}, read of 128 KiB {read:?}, {speed:.0} MB/s");
}

fn main() {
    let library = built::memory();
    measure("in process", &built::within(&library, "8M").unwrap());
    measure("process of its own", &built::apart(&library, "8M").unwrap());
}
