//! Counts the bytes of all files of a volume, read in the order in which they lie: `sum_tree IMAGE`.

use volary::Vol;
use volary::bulk::Content;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vol = Vol::open(std::env::args().nth(1).ok_or("which volume?")?)?;
    let mut sum = 0;
    for file in vol.bulk(["/"]).files()? {
        match file.content {
            Content::Whole(bytes) | Content::Chunk { bytes, .. } => sum += bytes.len(),
            Content::Failed(e) => eprintln!("{}: {e}", volary::escape(&file.path)),
            _ => {}
        }
    }
    println!("{sum} bytes");
    Ok(())
}
