//! Words that are not used, for the field has another one. GLOSSARY.md has those that are.

use super::{relative, sources, tell};
use syn::visit::Visit;

/// What no type, module, function or field is called, and what it is called.
const UNUSED: &[(&str, &str)] = &[("tape", "trace"), ("taped", "traced"), ("story", "history")];

#[test]
fn nothing_is_called_by_a_word_for_which_the_field_has_another() {
    let mut wrong = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).expect("source");
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut names = Names::default();
        names.visit_file(&parsed);
        for name in names.0 {
            let word = UNUSED.iter().find(|(unused, _)| name == *unused);
            wrong.extend(word.map(|(unused, used)| {
                format!("{}: {unused}, here called {used}", relative(&path))
            }));
        }
    }
    tell(
        "names by a word for which the field has another",
        wrong.len(),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a file gives names to, in small letters.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn add(&mut self, name: &syn::Ident) {
        self.0.push(name.to_string().to_lowercase());
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident);
        syn::visit::visit_item_struct(self, item);
    }
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident);
        syn::visit::visit_item_enum(self, item);
    }
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.add(&item.ident);
        syn::visit::visit_item_mod(self, item);
    }
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.add(&signature.ident);
        syn::visit::visit_signature(self, signature);
    }
    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.add(name);
        }
        syn::visit::visit_field(self, field);
    }
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.add(&pattern.ident);
        syn::visit::visit_pat_ident(self, pattern);
    }
}
