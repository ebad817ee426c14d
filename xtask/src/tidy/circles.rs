//! Modules of a crate that use each other in a circle: none of them can be understood, tested or taken away alone.
//!
//! A module uses another if it names a path that leads there: `crate::cache::Cache`, also through a `pub use` of a
//! module above. Such a `pub use` itself, and what is for tests only, does not count.

use super::{crates, relative, tell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::Visit;

/// A module: its place in the crate, `["cache", "page"]`.
type Name = Vec<String>;

/// A crate's modules.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Name, Module>,
}

#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Paths that it names, from the crate's root on.
    named: BTreeSet<Name>,
    /// What it hands on by `pub use`: the name here, and the path there.
    handed_on: HashMap<String, Name>,
}

#[test]
fn modules_form_no_circles() {
    let mut wrong = Vec::new();
    for path in crates() {
        for circle in Crate::read(&path).circles() {
            wrong.push(format!("{}: {}", relative(&path), circle.join(", ")));
        }
    }
    tell("circles of modules", wrong.len());
    assert!(
        wrong.is_empty(),
        "these use each other, so that none can be understood alone:\n{}",
        wrong.join("\n")
    );
}

impl Crate {
    /// Reads a crate's library, or else its program.
    fn read(dir: &Path) -> Self {
        let src = dir.join("src");
        let mut all = Self::default();
        for main in ["lib.rs", "main.rs"] {
            let file = src.join(main);
            if file.exists() && all.modules.is_empty() {
                all.add(&Name::new(), &file, &src);
            }
        }
        all
    }

    /// Adds the module in a file, and those below it, which are in `below`.
    fn add(&mut self, name: &Name, file: &Path, below: &Path) {
        let text = fs::read_to_string(file).expect("source");
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let module = Module {
            file: file.to_path_buf(),
            ..Module::default()
        };
        self.modules.insert(name.clone(), module);
        self.items(name, name, &parsed.items, below);
    }

    /// Takes items of a module `own`, in which an inline module may lie: `here`.
    fn items(&mut self, own: &Name, here: &Name, items: &[syn::Item], below: &Path) {
        for item in items {
            match item {
                syn::Item::Mod(module) if is_for_tests(&module.attrs) => {}
                syn::Item::Mod(module) => self.module(own, here, module, below),
                other => {
                    let mut named = Named::default();
                    named.visit_item(other);
                    let module = self.modules.entry(own.clone()).or_default();
                    for (path, new_name, is_handed_on) in named.paths {
                        let Some(path) = absolute(here, &path) else {
                            continue;
                        };
                        if !is_handed_on {
                            module.named.insert(path);
                        } else if own == here {
                            module.handed_on.insert(new_name, path);
                        }
                    }
                }
            }
        }
    }

    fn module(&mut self, own: &Name, here: &Name, module: &syn::ItemMod, below: &Path) {
        let ident = module.ident.to_string();
        let inner: Name = here.iter().cloned().chain([ident.clone()]).collect();
        if let Some((_, items)) = &module.content {
            return self.items(own, &inner, items, &below.join(&ident));
        }
        let [file, folder] =
            [format!("{ident}.rs"), format!("{ident}/mod.rs")].map(|f| below.join(f));
        let file = if file.exists() { file } else { folder };
        // A module with a path of its own (`#[path]`) is not the crate's.
        if file.exists() {
            self.add(&inner, &file, &below.join(&ident));
        }
    }

    /// Returns the module that a path leads to, through what modules hand on.
    fn leads_to(&self, path: &[String]) -> Option<&Name> {
        let mut path = path.to_vec();
        // Whoever hands on what they are handed on ends somewhere.
        for _ in 0..8 {
            let depth = (0..=path.len())
                .rev()
                .find(|len| self.modules.contains_key(&path[..*len]))?;
            let (name, module) = self.modules.get_key_value(&path[..depth])?;
            let next = path.get(depth).and_then(|next| module.handed_on.get(next));
            match next {
                Some(next) => path = next.iter().chain(&path[depth + 1..]).cloned().collect(),
                None => return Some(name),
            }
        }
        None
    }

    /// Returns the circles, each as its files.
    fn circles(&self) -> Vec<Vec<String>> {
        let names: Vec<&Name> = self.modules.keys().collect();
        let number = |name: &Name| names.iter().position(|other| *other == name);
        let uses: Vec<BTreeSet<usize>> = names
            .iter()
            .enumerate()
            .map(|(own, name)| {
                let named = self.modules[*name].named.iter();
                let to = named.filter_map(|path| self.leads_to(path).and_then(number));
                to.filter(|to| *to != own).collect()
            })
            .collect();
        let reached: Vec<BTreeSet<usize>> =
            (0..names.len()).map(|from| reach(&uses, from)).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for from in 0..names.len() {
            let circle: Vec<usize> = reached[from]
                .iter()
                .copied()
                .filter(|to| reached[*to].contains(&from))
                .collect();
            if circle.len() > 1 && seen.insert(circle.clone()) {
                let files = circle
                    .iter()
                    .map(|at| relative(&self.modules[names[*at]].file));
                circles.push(files.collect());
            }
        }
        circles
    }
}

/// Returns all that can be reached by one step or more.
fn reach(uses: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut todo: Vec<usize> = uses[from].iter().copied().collect();
    while let Some(next) = todo.pop() {
        if found.insert(next) {
            todo.extend(&uses[next]);
        }
    }
    found
}

fn is_for_tests(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("cfg")
            && attr
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "test")
    })
}

/// Returns a path from the crate's root on. What is of another crate seems to be of the module itself.
fn absolute(here: &Name, path: &[String]) -> Option<Name> {
    let mut base: Name = match path.first()?.as_str() {
        "crate" => Name::new(),
        // A module below, or something that leads back to the module itself.
        _ => here.clone(),
    };
    let mut rest = path
        .iter()
        .skip_while(|word| *word == "crate" || *word == "self")
        .peekable();
    while rest.peek().is_some_and(|word| *word == "super") {
        rest.next();
        base.pop()?;
    }
    base.extend(rest.cloned());
    Some(base)
}

/// Paths that an item names: each with the name that it gets, and whether it is handed on.
#[derive(Default)]
struct Named {
    paths: Vec<(Name, String, bool)>,
}

impl Named {
    fn tree(&mut self, before: &Name, tree: &syn::UseTree, is_public: bool) {
        let with = |ident: &syn::Ident| -> Name {
            before.iter().cloned().chain([ident.to_string()]).collect()
        };
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree, is_public),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.paths.push((before.clone(), last, is_public));
            }
            syn::UseTree::Name(name) => {
                self.paths
                    .push((with(&name.ident), name.ident.to_string(), is_public));
            }
            syn::UseTree::Rename(name) => {
                self.paths
                    .push((with(&name.ident), name.rename.to_string(), is_public));
            }
            syn::UseTree::Glob(_) => self.paths.push((before.clone(), "*".into(), false)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(before, tree, is_public);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        let start = Name::new();
        // `pub use page::Page` is of a module below.
        self.tree(&start, &item.tree, is_public);
        if is_public {
            for (path, ..) in &mut self.paths {
                let is_below = !matches!(
                    path.first().map(String::as_str),
                    Some("crate" | "super" | "self")
                );
                if is_below {
                    path.insert(0, "self".into());
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Name = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if words.len() > 1 {
            self.paths.push((words, String::new(), false));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
}
