//! Short names and the case of names, as mtools makes them.

use crate::tools::run;
use std::collections::BTreeMap;
use volary_block::{FileDevice, OpenOptions};
use volary_core::Make;
use volary_fat::make::make;
use volary_fat::names::{Names, Stored, Style};
use volary_fat::volume::{FatKind, Layout};
use volary_fat::walk::{Walker, Where};

/// Names that no two short names can be mixed up for.
const NAMES: [&str; 22] = [
    "The quick brown.fox",
    "README.TXT",
    "readme2.txt",
    "Mixed.Txt",
    ".bashrc",
    "a.b.c.html",
    "x+y=z.c",
    "longfilename",
    "sp ace",
    "UPPER.low",
    "low.UPP",
    "noext",
    "b.toolongext",
    "trailing~1",
    "ÄÖÜ",
    "name[1].txt",
    "..dots",
    "x.y.z",
    "grün und grau.txt",
    "12345678.123",
    "123456789.1",
    "-_@~`!(){}^#&.$%",
];

#[test]
fn mtools_makes_the_short_names_that_we_make() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("volume.img");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(10 << 20)
        .unwrap();
    let dev = FileDevice::open(&image, OpenOptions::default()).unwrap();
    make(&dev, FatKind::Fat16, &Make::default()).unwrap();
    let files: Vec<String> = NAMES
        .map(|name| {
            let path = dir.path().join(name);
            std::fs::write(&path, name).unwrap();
            path.to_str().unwrap().into()
        })
        .to_vec();
    let image = image.to_str().unwrap();
    let mut args = vec!["-i", image];
    args.extend(files.iter().map(String::as_str));
    args.push("::");
    let Some(answer) = run("mcopy", &args) else {
        return;
    };
    assert_eq!(answer.code, 0, "{}", answer.text);

    let names = Names::new(Style::Long, 437, false).unwrap();
    let layout = Layout::read(&dev).unwrap();
    let mut found = BTreeMap::new();
    let mut shown = Vec::new();
    Walker::new(&dev, &layout)
        .records(Where::Root, &mut |r| {
            names.show(r, &mut shown);
            let stored = (r.short.DIR_Name, r.short.DIR_NTRes);
            found.insert(String::from_utf8(shown.clone()).unwrap(), stored);
            true
        })
        .unwrap();
    assert_eq!(found.len(), NAMES.len());
    for name in NAMES {
        let ours = match names.store(name.as_bytes()).unwrap() {
            Stored::Short(short, flags) => (short, flags),
            Stored::Long(_, basis) => (basis.plain().unwrap_or(basis.numbered(1)), 0),
            Stored::Paper(..) => unreachable!("not in the paper's layout"),
        };
        assert_eq!(found.get(name), Some(&ours), "{name}");
    }
}
