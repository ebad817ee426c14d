//! The target for lists of users.

use crate::heap;
use crate::input::Input;
use volary_session::Users;

const HEAP: usize = 1 << 20;
const CHANGES_MAX: usize = 16;
const EXAMPLE: &[u8] = b"# who\nroot:0:0:8846f7eaee8fb117ad06bdd830b7586c\n\n\
    a b:1000:1000,27,100:8846f7eaee8fb117ad06bdd830b7586c\n\xc3\xa9:4294967294:5:-\n";

/// Reads a list: the input itself, or an example that it changes.
pub fn list(input: &[u8]) {
    let mut input = Input::new(input);
    let choice = input.byte();
    let mut text = EXAMPLE.to_vec();
    if choice.is_multiple_of(4) {
        text = input.bytes(usize::MAX).to_vec();
    }
    for _ in 0..CHANGES_MAX {
        if input.is_empty() {
            break;
        }
        let at = usize::from(input.byte()) % text.len();
        match input.byte() % 4 {
            0 => drop(text.splice(at..at, input.bytes(8).to_vec())),
            1 => drop(text.remove(at)),
            _ => text[at] = input.byte(),
        }
        if text.is_empty() {
            break;
        }
    }
    heap::limit(HEAP + 16 * text.len());
    match Users::parse(&text, u32::from(choice / 4 % 2) * 0o600) {
        Ok(users) => users.iter().for_each(|user| {
            assert_eq!(users.find(&user.name), Some(user));
        }),
        Err(e) => assert!(!e.to_string().contains('\n'), "{e}"),
    }
    heap::limit(usize::MAX);
}
