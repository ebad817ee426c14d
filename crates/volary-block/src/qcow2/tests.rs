use super::*;
use crate::magic::MAGIC;
use crate::open_image;
use proptest::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Runs QEMU's tool. If it is not installed, prints so and returns `None`.
fn qemu_img(args: &[&str]) -> Option<String> {
    match Command::new("qemu-img").args(args).output() {
        Ok(out) => {
            let words = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "qemu-img {args:?}: {words}");
            Some(String::from_utf8_lossy(&out.stdout).into_owned())
        }
        Err(_) => {
            eprintln!("passed over: qemu-img is not installed");
            None
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns a new image made by QEMU.
fn image(options: &str, size: &str) -> Option<(TempDir, PathBuf)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.qcow2");
    qemu_img(&[
        "create",
        "-q",
        "-f",
        "qcow2",
        "-o",
        options,
        text(&path),
        size,
    ])?;
    Some((dir, path))
}

const READ_ONLY: OpenOptions = OpenOptions {
    read_only: true,
    direct: false,
    unlocked: false,
};

#[test]
fn what_we_write_qemu_reads_and_finds_sound() {
    for options in [
        "compat=1.1",
        "compat=0.10",
        "cluster_size=512",
        "cluster_size=2M",
    ] {
        let Some((dir, path)) = image(options, "8M") else {
            return;
        };
        let mut model = vec![0_u8; 8 << 20];
        let dev = Qcow2::open(&path, OpenOptions::default()).unwrap();
        assert_eq!(dev.geometry().size, 8 << 20);
        for i in 0..200_usize {
            let at = i * 7919 * 13 % (8 << 20);
            let len = (i * 37 * 37 % 30_000).min(model.len() - at);
            let data: Vec<u8> = (0..len).map(|n| (n + i) as u8).collect();
            let (a, b) = data.split_at(len / 2);
            dev.write_gather(at as u64, &[a, b]).unwrap();
            model[at..at + len].copy_from_slice(&data);
        }
        let mut all = vec![0; model.len()];
        dev.read_at(0, &mut all).unwrap();
        assert!(all == model, "{options}: reads back");
        dev.flush().unwrap();
        drop(dev);
        qemu_img(&["check", "-q", text(&path)]);
        let raw = dir.path().join("raw");
        qemu_img(&["convert", "-O", "raw", text(&path), text(&raw)]);
        assert!(
            std::fs::read(&raw).unwrap() == model,
            "{options}: QEMU reads it"
        );
    }
}

#[test]
fn what_qemu_writes_we_read_compressed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let raw = dir.path().join("raw");
    let bytes: Vec<u8> = (0..3_000_320_u32)
        .map(|i| (i / 999 * (i >> 20)) as u8)
        .collect();
    std::fs::write(&raw, &bytes).unwrap();
    for compress in [&[][..], &["-c"]] {
        let path = dir.path().join("b.qcow2");
        let mut args = vec!["convert", "-f", "raw", "-O", "qcow2"];
        args.extend(compress);
        args.extend([text(&raw), text(&path)]);
        if qemu_img(&args).is_none() {
            return;
        }
        let dev = open_image(&path, READ_ONLY).unwrap();
        let mut all = vec![0; bytes.len()];
        dev.read_at(0, &mut all).unwrap();
        assert!(all == bytes);
        assert_eq!(dev.write_at(0, &[1]).unwrap_err(), Kind::ReadOnly);
        assert_eq!(
            dev.read_at(dev.geometry().size, &mut [0]).unwrap_err(),
            Kind::Invalid
        );
    }
}

#[test]
fn writing_leaves_internal_snapshots_as_they_were() {
    let Some((dir, path)) = image("compat=1.1", "4M") else {
        return;
    };
    let write = |byte: u8| {
        let dev = Qcow2::open(&path, OpenOptions::default()).unwrap();
        dev.write_at(100_000, &[byte; 100_000]).unwrap();
        dev.flush().unwrap();
    };
    write(1);
    qemu_img(&["snapshot", "-c", "s", text(&path)]);
    write(2);
    qemu_img(&["check", "-q", text(&path)]);
    for (args, byte) in [(vec!["-l", "s"], 1), (vec![], 2)] {
        let raw = dir.path().join("raw");
        let all = [
            &["convert", "-O", "raw"],
            &args[..],
            &[text(&path), text(&raw)],
        ]
        .concat();
        qemu_img(&all);
        let bytes = std::fs::read(&raw).unwrap();
        assert_eq!(
            [99_999, 100_000, 199_999, 200_000].map(|i| bytes[i]),
            [0, byte, byte, 0]
        );
    }
}

#[test]
fn an_image_on_another_file_is_refused_unless_asked_for() {
    let Some((dir, base)) = image("compat=1.1", "1M") else {
        return;
    };
    let dev = Qcow2::open(&base, OpenOptions::default()).unwrap();
    dev.write_at(0, &[7; 512]).unwrap();
    dev.flush().unwrap();
    drop(dev);
    let top = dir.path().join("top.qcow2");
    qemu_img(&[
        "create",
        "-q",
        "-f",
        "qcow2",
        "-F",
        "qcow2",
        "-b",
        text(&base),
        text(&top),
    ]);
    let e = open_image(&top, READ_ONLY).err().unwrap();
    assert_eq!(e, Kind::Unsupported);
    assert!(e.to_string().contains("stands on another file, '/"), "{e}");
    let dev = Qcow2::open_with_backing(&top, READ_ONLY).unwrap();
    let mut b = [0; 1024];
    dev.read_at(0, &mut b).unwrap();
    assert_eq!((b[511], b[512]), (7, 0));
}

#[test]
fn a_content_in_another_file_and_encryption_are_refused() {
    let Some((dir, path)) = image("compat=1.1", "1M") else {
        return;
    };
    let other = dir.path().join("other.qcow2");
    let data = format!("data_file={}", text(&dir.path().join("data")));
    qemu_img(&[
        "create",
        "-q",
        "-f",
        "qcow2",
        "-o",
        &data,
        text(&other),
        "1M",
    ]);
    assert_eq!(
        Qcow2::open(&other, READ_ONLY).err().unwrap(),
        Kind::Unsupported
    );
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[35] = 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(
        Qcow2::open(&path, READ_ONLY).err().unwrap(),
        Kind::Unsupported
    );
}

#[test]
fn each_wrong_field_of_the_header_is_named_with_its_place() {
    let Some((_dir, path)) = image("compat=1.1", "1M") else {
        return;
    };
    let good = std::fs::read(&path).unwrap();
    let cases = [
        (20, "cluster_bits"),
        (24, "size"),
        (25, "l1_size"),
        (36, "l1_size"),
        (40, "l1_size"),
        (48, "refcount_table_clusters"),
        (56, "refcount_table_clusters"),
        (8, "backing_file_offset"),
        (0, "magic"),
    ];
    for (at, field) in cases {
        let mut bytes = good[..HEADER_LEN].to_vec();
        bytes[at] = 0xff;
        let e = header::check(&bytes, good.len() as u64).unwrap_err();
        assert_eq!(e.as_corrupt().unwrap().what, field);
    }
    assert_eq!(
        header::check(&good[..HEADER_LEN], good.len() as u64),
        Ok(None)
    );
}

#[test]
fn an_image_is_locked_and_a_short_file_with_the_magic_is_a_raw_one() {
    let Some((dir, path)) = image("compat=1.1", "1M") else {
        return;
    };
    let _dev = Qcow2::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(open_image(&path, READ_ONLY).err().unwrap(), Kind::Busy);
    let short = dir.path().join("short");
    std::fs::write(&short, MAGIC).unwrap();
    assert_eq!(open_image(&short, READ_ONLY).unwrap().geometry().size, 4);
}

#[test]
fn damage_anywhere_in_the_tables_is_an_answer_or_an_error() {
    let Some((_dir, path)) = image("compat=1.1,cluster_size=4096", "1M") else {
        return;
    };
    let dev = Qcow2::open(&path, OpenOptions::default()).unwrap();
    dev.write_at(5000, &[1; 100_000]).unwrap();
    dev.flush().unwrap();
    drop(dev);
    let good = std::fs::read(&path).unwrap();
    let place = (0..5_usize, 0..600_usize, any::<u8>());
    crate::seeded::check(60, proptest::collection::vec(place, 1..6), |damage| {
        let mut bytes = good.clone();
        for (cluster, at, byte) in damage {
            bytes[cluster * 4096 + at] = byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        let Ok(dev) = Qcow2::open(&path, OpenOptions::default()) else {
            return;
        };
        let mut b = [0; 4096];
        let size = dev.geometry().size.min(1 << 20);
        for at in (0..size).step_by(4096).take_while(|at| at + 4096 <= size) {
            let _ = dev.read_at(at, &mut b);
            let _ = dev.write_at(at, &b);
        }
        let _ = dev.flush();
    });
}

#[test]
fn a_panic_of_imago_is_told_as_an_error_alone() {
    let (tell, told) = std::sync::mpsc::channel();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match panic.payload_as_str() {
        Some("planted") => tell.send(catches_panic()).unwrap(),
        _ => usual(panic),
    }));
    assert!(caught(|| panic!("planted")).is_err());
    assert!(std::panic::catch_unwind(|| panic!("planted")).is_err());
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true, false]);
}

/// A write to such an image could overwrite its tables, or make imago recurse until the stack
/// overflows.
#[test]
fn an_image_that_does_not_count_its_own_tables_is_read_and_not_written() {
    for bits in ["1", "4", "16", "64"] {
        for cluster in ["512", "65536"] {
            let options = format!("compat=1.1,cluster_size={cluster},refcount_bits={bits}");
            let Some((_dir, path)) = image(&options, "1M") else {
                return;
            };
            let dev = Qcow2::open(&path, OpenOptions::default()).unwrap();
            dev.write_at(5000, &[1; 1000]).unwrap();
            dev.flush().unwrap();
            drop(dev);
            let good = std::fs::read(&path).unwrap();
            let number = |at: usize| u64::from_be_bytes(*good[at..].first_chunk().unwrap());
            let table = usize::try_from(number(48)).unwrap();
            let block = usize::try_from(number(table)).unwrap();
            for (at, len) in [(table, 8), (block, 8)] {
                let mut bytes = good.clone();
                bytes[at..at + len].fill(0);
                std::fs::write(&path, bytes).unwrap();
                let refused = Qcow2::open(&path, OpenOptions::default()).err().unwrap();
                assert_eq!(refused.kind(), Kind::Corrupt);
                let expected = format!("refcount at byte {at}");
                assert!(refused.to_string().contains(&expected), "{refused}");
                let dev = Qcow2::open(&path, READ_ONLY).unwrap();
                let mut read = [0; 1000];
                dev.read_at(5000, &mut read).unwrap();
                assert_eq!(read, [1; 1000]);
            }
        }
    }
}

#[test]
fn an_image_that_was_cut_is_refused_and_one_with_lost_clusters_is_not() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("image.qcow2");
    Qcow2::create(&path, 64 << 20).unwrap();
    let dev = Qcow2::open(&path, OpenOptions::default()).unwrap();
    dev.write_at(1 << 20, &vec![7; 8 << 20]).unwrap();
    dev.flush().unwrap();
    drop(dev);
    let whole = std::fs::read(&path).unwrap();
    for len in [5_000_000, whole.len() - (64 << 10)] {
        std::fs::write(&path, &whole[..len]).unwrap();
        for options in [READ_ONLY, OpenOptions::default()] {
            let e = Qcow2::open(&path, options).err().unwrap();
            assert_eq!(e, Kind::Corrupt);
            let told = e.to_string();
            assert!(told.contains("(is the image truncated?)"), "{told}");
            assert!(told.contains("qemu-img check"), "{told}");
        }
    }
    // The last cluster need not be complete.
    std::fs::write(&path, &whole[..whole.len() - 512]).unwrap();
    Qcow2::open(&path, READ_ONLY).unwrap();
    // Counted, and used by nothing: what a crash leaves.
    let mut lost = whole;
    let field = |at: usize| u64::from_be_bytes(lost[at..at + 8].try_into().unwrap());
    let block = field(field(48) as usize) as usize;
    let past = lost.len().div_ceil(64 << 10) * 2;
    lost[block + past + 1] = 1;
    std::fs::write(&path, &lost).unwrap();
    Qcow2::open(&path, OpenOptions::default()).unwrap();
}
