//! With few descriptors. Alone in its process, whose limit this is.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use volary_core::{Cookie, DirBuf, Mode, Whole};
use volary_host::HostOptions;
use volary_testkit::volumes::as_root;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("list").count()
}

#[test]
fn as_many_files_are_read_together_as_there_are_descriptors_for() {
    let dir = tempfile::tempdir().expect("a directory");
    for number in 0..100 {
        std::fs::write(dir.path().join(number.to_string()), [7; 100]).expect("write");
    }
    let limit = Rlimit {
        current: Some(descriptors() as u64 + 24),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).expect("setrlimit");
    for by_handle in [true, false] {
        let options = HostOptions {
            by_handle,
            ..HostOptions::default()
        };
        let fs = volary_host::attach(dir.path(), &options).expect("attach");
        let mut listed = DirBuf::new(1000, 64 << 10, true);
        let (wants, before, read, after) = as_root(|cx| {
            let open = fs.open(cx, fs.root(), Mode::Read).expect("open");
            fs.readdir(cx, open, Cookie::START, &mut listed)
                .expect("list");
            fs.close(cx, open).expect("close");
            let attrs: Vec<_> = listed.iter().filter_map(|entry| entry.attr).collect();
            let room = |attr| Whole {
                attr,
                bytes: vec![0; 100],
                read: None,
            };
            let mut files: Vec<_> = attrs.iter().map(room).collect();
            let wants = fs.read_whole(cx, &mut []);
            let before = descriptors();
            fs.read_whole(cx, &mut files);
            let is_read = |file: &&Whole<'_>| file.read.is_some_and(|(len, _)| len == 100);
            let read = files.iter().filter(is_read);
            let read = read
                .inspect(|file| assert_eq!(file.bytes, [7; 100]))
                .count();
            (wants, before, read, descriptors())
        });
        assert!(
            !wants || (4..100).contains(&read),
            "{read}, by handle: {by_handle}"
        );
        // Those that are held for directories come and go.
        assert!(after <= before + 1, "{before} and {after}");
    }
}
