//! Parameters that are tuples: their parts have no names where they are passed. A type has, or two parameters.

use super::{files_below, relative};
use crate::run::root;
use syn::visit::Visit;

/// Crates that have some: how many. They may become fewer, and are lowered here then.
const TUPLES: &[(&str, usize)] = &[("crates/volary-test", 16)];

#[test]
fn no_more_parameters_are_tuples_than_were() {
    let mut wrong = Vec::new();
    for dir in ["crates", "drivers", "servers"] {
        for entry in std::fs::read_dir(root().join(dir)).expect("crates") {
            let path = entry.expect("entry").path();
            let mut tuples = Tuples(0);
            for file in files_below(&path.join("src"), "rs") {
                let text = std::fs::read_to_string(&file).expect("source");
                let parsed = syn::parse_file(&text);
                tuples.visit_file(&parsed.unwrap_or_else(|e| panic!("{}: {e}", file.display())));
            }
            let name = relative(&path);
            let known = TUPLES
                .iter()
                .find(|row| row.0 == name)
                .map_or(0, |row| row.1);
            if tuples.0 != known {
                wrong.push(format!("    (\"{name}\", {}), // was {known}", tuples.0));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "give the parts names, or write fewer into TUPLES:\n{}",
        wrong.join("\n")
    );
}

/// Counts parameters of functions.
struct Tuples(usize);

impl<'ast> Visit<'ast> for Tuples {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let is_tuple = |input: &&syn::FnArg| match input {
            syn::FnArg::Typed(typed) => {
                matches!(&*typed.ty, syn::Type::Tuple(tuple) if tuple.elems.len() > 1)
            }
            syn::FnArg::Receiver(_) => false,
        };
        self.0 += signature.inputs.iter().filter(is_tuple).count();
        syn::visit::visit_signature(self, signature);
    }
}
