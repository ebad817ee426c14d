//! The header for C is made of `src/abi`.

use std::path::Path;
use std::process::Command;

const AFTER: &str = r#"#define VOLARY_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What a plug-in exports, with VOLARY_EXPORT before it: VolaryCreate.
 */
const VolaryTable *FileSystemCreate(const char *name, const char *config, uint32_t version);

/**
 * The same for a driver that is asked by paths: VolaryCreatePaths.
 */
const VolaryPathTable *FileSystemCreatePaths(const char *name, const char *config, uint32_t version);

#ifdef __cplusplus
}
#endif
"#;

fn made() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        pragma_once: true,
        export: cbindgen::ExportConfig {
            include: [
                "VolaryTable",
                "VolaryCreate",
                "VolaryPathTable",
                "VolaryCreatePaths",
            ]
            .map(Into::into)
            .to_vec(),
            ..cbindgen::ExportConfig::default()
        },
        header: Some(
            "/*\n * Drivers of volary that are loaded at run time. Made of volary-plugin's src/abi by cbindgen:\n \
             * change that, and have the test `header` write this with VOLARY_BLESS=1.\n */"
                .into(),
        ),
        trailer: Some(AFTER.into()),
        no_includes: true,
        usize_is_size_t: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        line_length: 100,
        style: cbindgen::Style::Both,
        ..cbindgen::Config::default()
    };
    let sources =
        ["codes", "data", "table", "paths"].map(|name| root.join(format!("src/abi/{name}.rs")));
    let made = sources
        .iter()
        .fold(cbindgen::Builder::new(), |made, source| {
            made.with_src(source)
        })
        .with_config(config)
        .generate()
        .expect("a header");
    let mut text = Vec::new();
    made.write(&mut text);
    String::from_utf8(text).expect("text")
}

#[test]
fn the_header_is_what_the_table_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/volary_plugin.h");
    let made = made();
    if std::env::var_os("VOLARY_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == made,
        "include/volary_plugin.h is not what src/abi says; VOLARY_BLESS=1 cargo test -p \
         volary-plugin header writes it"
    );
}

/// C++ reads it too, and its structures have the sizes that Rust's have.
#[test]
fn the_sizes_of_c_and_of_rust_are_one() {
    use volary_plugin::abi::*;
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("sizes.c");
    let sizes = [
        ("VolaryNode", size_of::<VolaryNode>()),
        ("VolaryAttr", size_of::<VolaryAttr>()),
        ("VolarySetAttr", size_of::<VolarySetAttr>()),
        ("VolaryOpen", size_of::<VolaryOpen>()),
        ("VolaryContext", size_of::<VolaryContext>()),
        ("VolaryEntry", size_of::<VolaryEntry>()),
        ("VolaryList", size_of::<VolaryList>()),
        ("VolaryStatFs", size_of::<VolaryStatFs>()),
        ("VolaryCaps", size_of::<VolaryCaps>()),
        ("VolaryAttach", size_of::<VolaryAttach>()),
        ("VolaryHost", size_of::<VolaryHost>()),
        ("VolaryLock", size_of::<VolaryLock>()),
        ("VolaryTable", size_of::<VolaryTable>()),
        ("VolaryPathList", size_of::<VolaryPathList>()),
        ("VolaryPathTable", size_of::<VolaryPathTable>()),
    ];
    let mut text = String::from("#include \"volary_plugin.h\"\n");
    for (name, size) in sizes {
        text += &format!("typedef char is_{name}[sizeof({name}) == {size} ? 1 : -1];\n");
    }
    std::fs::write(&source, text).unwrap();
    for compiler in [&["cc", "-x", "c"][..], &["c++", "-x", "c++"]] {
        let done = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-fsyntax-only", "-Wall", "-Werror", "-I"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
            .arg(&source)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{compiler:?}: {said}");
    }
}
