//! Types with too many methods, or with methods in too many files: nobody can say what such a type is for.

use super::{crates, files_below, relative, tell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Methods that a type may have, and files in which they may stand.
const METHODS_MAX: usize = 40;
const FILES_MAX: usize = 5;

/// Types that have more: methods, files, and why they are left. They may become fewer, and are lowered here then.
const TYPES: &[(&str, &str, usize, usize, &str)] = &[
    (
        "crates/volary-block",
        "Cache",
        66,
        7,
        "what all drivers call: reads, writes, stages of a commit, reading ahead, over one table of pages",
    ),
    (
        "crates/volary-session",
        "Session",
        165,
        13,
        "the public interface: a method for each thing that a server asks; state is in parts below",
    ),
    (
        "crates/volary-test",
        "Case",
        50,
        1,
        "the words of the suite: a short method for each operation, over one volume",
    ),
    (
        "drivers/volary-fat",
        "Table",
        64,
        5,
        "to be split: segments in memory, taking clusters, writing the copies, over one lock",
    ),
];

/// Methods of a type, and the files in which they stand.
type Extent = (usize, BTreeSet<String>);
/// What a crate says of the types of a name: the files that define one, and the methods by file.
#[derive(Default)]
struct Named {
    defined: Vec<String>,
    methods: Vec<(String, usize)>,
}

#[test]
fn types_have_no_more_methods_than_they_had() {
    let mut wrong = Vec::new();
    let mut known = TYPES.iter().collect::<Vec<_>>();
    for path in crates() {
        let name = relative(&path);
        for (of, (methods, files)) in types(&path.join("src")) {
            if methods <= METHODS_MAX && files.len() <= FILES_MAX {
                continue;
            }
            let count = (methods, files.len());
            known.retain(|row| (row.0, row.1) != (name.as_str(), of.as_str()));
            let row = TYPES.iter().find(|row| (row.0, row.1) == (&name, &of));
            if row.is_none_or(|row| (row.2, row.3) != count) {
                wrong.push(format!(
                    "    (\"{name}\", \"{of}\", {}, {}),",
                    count.0, count.1
                ));
            }
        }
    }
    let words =
        format!("types with more than {METHODS_MAX} methods, or in more than {FILES_MAX} files");
    tell(&words, TYPES.len());
    wrong.extend(known.iter().map(|row| format!("no more: {row:?}")));
    assert!(
        wrong.is_empty(),
        "give parts of these a type of their own, or write fewer into TYPES:\n{}",
        wrong.join("\n")
    );
}

/// Returns the types of a crate, each with its name. Methods of traits do not count: the trait asks
/// for them.
fn types(src: &Path) -> Vec<(String, Extent)> {
    let mut all = Vec::new();
    for (name, named) in names(src) {
        all.extend(named.types().into_iter().map(|of| (name.clone(), of)));
    }
    all
}

/// Returns what the files of a crate say of types, by their names.
fn names(src: &Path) -> BTreeMap<String, Named> {
    let mut all: BTreeMap<String, Named> = BTreeMap::new();
    for file in files_below(src, "rs") {
        let text = std::fs::read_to_string(&file).expect("source");
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let file = relative(&file);
        let mut define = |name: &syn::Ident| {
            let named = all.entry(name.to_string()).or_default();
            named.defined.push(file.clone());
        };
        for item in &parsed.items {
            match item {
                syn::Item::Struct(item) => define(&item.ident),
                syn::Item::Enum(item) => define(&item.ident),
                syn::Item::Union(item) => define(&item.ident),
                _ => {}
            }
        }
        for item in &parsed.items {
            if let syn::Item::Impl(item) = item
                && item.trait_.is_none()
                && let Some(of) = name_of(&item.self_ty)
            {
                let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(_));
                let count = item.items.iter().filter(is_method).count();
                all.entry(of)
                    .or_default()
                    .methods
                    .push((file.clone(), count));
            }
        }
    }
    all.retain(|_, named| !named.defined.is_empty());
    all
}

impl Named {
    /// Returns the types of the name. Methods belong to the type whose file is nearest by its path.
    fn types(&self) -> Vec<Extent> {
        let mut all = vec![Extent::default(); self.defined.len()];
        for (file, count) in &self.methods {
            let near = |defined: &String| {
                let same = defined.bytes().zip(file.bytes());
                same.take_while(|(a, b)| a == b).count()
            };
            let types = self.defined.iter().zip(&mut all);
            let nearest = types.max_by_key(|(defined, _)| (*defined == file, near(defined)));
            if let Some((_, (methods, files))) = nearest {
                *methods += count;
                files.insert(file.clone());
            }
        }
        all
    }
}

/// Returns the last word of a type's path.
fn name_of(of: &syn::Type) -> Option<String> {
    let syn::Type::Path(path) = of else {
        return None;
    };
    Some(path.path.segments.last()?.ident.to_string())
}

/// Crates that call several types by one name: how many more types than names they have. They may
/// become fewer, and are lowered here then.
const NAMESAKES: &[(&str, usize)] = &[
    ("crates/volary", 3),
    ("crates/volary-bench", 28),
    ("crates/volary-block", 4),
    ("crates/volary-bulk", 1),
    ("crates/volary-cli", 19),
    ("crates/volary-copy", 4),
    ("crates/volary-driver", 2),
    ("crates/volary-layers", 3),
    ("crates/volary-plugin", 7),
    ("crates/volary-session", 3),
    ("crates/volary-sim", 6),
    ("crates/volary-test", 4),
    ("crates/volary-testkit", 1),
    ("drivers/volary-cedar", 3),
    ("drivers/volary-ext4", 4),
    ("drivers/volary-fat", 24),
    ("drivers/volary-ffs", 13),
    ("drivers/volary-host", 1),
    ("drivers/volary-nfs-client", 3),
    ("drivers/volary-ntfs", 1),
    ("drivers/volary-v7", 5),
    ("servers/volary-fuse", 1),
    ("servers/volary-nfs", 6),
    ("servers/volary-smb", 24),
];

#[test]
fn no_more_types_share_a_name_than_did() {
    let (mut wrong, mut sum) = (Vec::new(), 0);
    for path in crates() {
        let name = relative(&path);
        let all = names(&path.join("src"));
        let more: usize = all.values().map(|named| named.defined.len() - 1).sum();
        let row = NAMESAKES.iter().find(|row| row.0 == name);
        let known = row.map_or(0, |row| row.1);
        sum += more;
        if more != known {
            wrong.push(format!("    (\"{name}\", {more}), // was {known}"));
        }
    }
    tell("types whose name another one of the crate has", sum);
    assert!(
        wrong.is_empty(),
        "call one thing by one word, or write fewer into NAMESAKES:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn methods_belong_to_the_nearest_type_of_the_name() {
    let named = Named {
        defined: vec!["a/src/one/mod.rs".to_owned(), "a/src/two.rs".to_owned()],
        methods: [
            ("a/src/one/more.rs", 3),
            ("a/src/two.rs", 5),
            ("a/src/one/mod.rs", 7),
        ]
        .map(|(file, count)| (file.to_owned(), count))
        .to_vec(),
    };
    let counts: Vec<_> = named.types().iter().map(|of| (of.0, of.1.len())).collect();
    assert_eq!(counts, [(10, 2), (5, 1)]);
}
