//! The header is made of the source.

use std::path::Path;

const HEAD: &str = "\
/*
 * libvolary: file systems in user space. Made of the sources of libvolary by cbindgen: change those,
 * and have the test `header` write this with VOLARY_BLESS=1.
 *
 * Functions answer 0, or a number that is not negative, if all is well; else the negative of a
 * VolaryError, and volary_error() says in words what went wrong, and where.
 *
 * Texts end with a zero byte. Paths in volumes are bytes, as the volume has them, from its root: with a
 * slash before them or without. Names of kinds, options and layers are UTF-8.
 *
 * Pointers are to memory of the caller's, for as long as the call takes: texts that are read and
 * do not change meanwhile, room for results that nobody else uses meanwhile. A null pointer is
 * refused unless it is said that it may be null. Results are set only if all is well.
 *
 * Numbers stand for what is open. One that was closed, or never given out, is refused
 * (VOLARY_ERROR_STALE). All functions may be called from any thread, at the same time and of the same volume too;
 * the text of an error is that of the last failure on the same thread. After fork(2), the child must call
 * nothing of this: its threads are the parent's.
 */";

fn made() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        pragma_once: true,
        header: Some(HEAD.into()),
        no_includes: true,
        usize_is_size_t: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        line_length: 100,
        style: cbindgen::Style::Both,
        enumeration: cbindgen::EnumConfig {
            prefix_with_name: true,
            rename_variants: cbindgen::RenameRule::ScreamingSnakeCase,
            ..cbindgen::EnumConfig::default()
        },
        export: cbindgen::ExportConfig {
            include: ["VolaryError", "VolaryHow", "VolaryCheck"]
                .map(Into::into)
                .to_vec(),
            ..cbindgen::ExportConfig::default()
        },
        ..cbindgen::Config::default()
    };
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["abi", "fault", "volumes", "trees", "files", "serving"] {
        builder = builder.with_src(root.join("src").join(file).with_extension("rs"));
    }
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    String::from_utf8(text).expect("text")
}

#[test]
fn the_header_is_what_the_source_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/volary.h");
    let made = made();
    if std::env::var_os("VOLARY_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == made,
        "include/volary.h is not what the source says; VOLARY_BLESS=1 cargo test -p libvolary header \
         writes it"
    );
}

/// What the source exports is in the header, and nothing else.
#[test]
fn every_exported_function_is_in_the_header() {
    let header = made();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut count = 0;
    for file in std::fs::read_dir(root).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for rest in text.split("extern \"C\" fn volary_").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(header.contains(&format!("volary_{name}(")), "{name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
    assert_eq!(
        header.matches("\nint volary_").count()
            + header.matches("\nint64_t volary_").count()
            + header.matches("\nconst char *volary_").count(),
        count
    );
}
