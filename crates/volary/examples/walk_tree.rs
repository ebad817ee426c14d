//! Prints the sizes and paths of all files of a volume: `walk_tree IMAGE`. What cannot be read is told, and passed over.

use volary::{FileKind, Vol};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vol = Vol::open(std::env::args().nth(1).ok_or("which volume?")?)?;
    for found in vol.walk("/") {
        match found {
            Ok(found) if found.entry.kind == FileKind::File => {
                let size = found.entry.attr.map_or(0, |attr| attr.size);
                println!("{size:>10} {}", volary::escape(&found.path));
            }
            Ok(_) => {}
            Err(e) => eprintln!("{e}"),
        }
    }
    Ok(())
}
